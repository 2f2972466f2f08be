"""QUANTIZE between integer types."""

from __future__ import annotations

from ..draw import Draw
from ..net import Net, Tensor, output_quant, settle
from ..registry import Params, register
from .common import any_input, draw_gain, draw_zero_point

#: Output dtypes that both the references and Vela take, by input dtype.
OUTPUTS = {"int8": ("int8", "uint8", "int16"), "uint8": ("uint8", "int8"), "int16": ("int8", "int16")}


def draw_quantize(draw: Draw, x: Tensor, product: str) -> Params:
    output = draw.choice(OUTPUTS[x.dtype] + (("int32",) if product == "u85" and x.dtype != "uint8" else ()))
    return {"output": output, "gain": draw_gain(draw, output), "zero_point": draw_zero_point(draw, output)}


def apply_quantize(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    quant = output_quant(p["gain"], x.power * x.scale, p["zero_point"])
    sample = settle(x.sample * x.scale, quant, p["output"])
    y = net.tensor("quantized", x.shape, p["output"], quant, sample)
    net.operator("QUANTIZE", [x.index], [y])
    return [y]


register("QUANTIZE", any_input, draw_quantize, apply_quantize, ("int8", "uint8", "int16"))

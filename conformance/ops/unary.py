"""Element-wise operators of one operand, and SOFTMAX."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..draw import Draw, float32
from ..net import RANGES, Net, Tensor, output_quant, require, settle
from ..registry import Params, register
from ..tflite_writer import Quant
from .common import any_input, draw_gain, draw_zero_point, map_input, signed_input

#: Output quantisation that the TFLite kernels demand.
FIXED_OUTPUT: dict[tuple[str, str], Quant] = {
    ("LOGISTIC", "int8"): Quant(1 / 256, -128), ("LOGISTIC", "uint8"): Quant(1 / 256, 0),
    ("LOGISTIC", "int16"): Quant(1 / 32768), ("TANH", "int8"): Quant(1 / 128, 0),
    ("TANH", "uint8"): Quant(1 / 128, 128), ("TANH", "int16"): Quant(1 / 32768),
    ("SOFTMAX", "int8"): Quant(1 / 256, -128), ("SOFTMAX", "uint8"): Quant(1 / 256, 0),
    ("SOFTMAX", "int16"): Quant(1 / 32768),
}


def draw_activation(draw: Draw, x: Tensor, product: str) -> Params:
    """Output quantisation: the input's own, or one in which its values span `gain` codes."""
    return {"same_quant": draw.chance(0.25), "gain": draw_gain(draw, x.dtype),
            "zero_point": draw_zero_point(draw, x.dtype, "low")}


def _apply_activation(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        quant = x.quant
        if not p["same_quant"]:
            quant = output_quant(p["gain"], x.power * x.scale, p["zero_point"])
        real = x.sample * x.scale
        real = np.where(real < 0, real * p.get("alpha", 0.0), real)  # near enough for the curved ones
        y = net.tensor(opcode.lower(), x.shape, x.dtype, quant, settle(real, quant, x.dtype, opcode))
        net.operator(opcode, [x.index], [y], {"alpha": p["alpha"]} if "alpha" in p else
                     {"approximate": p["approximate"]} if "approximate" in p else {})
        return [y]

    return apply


def draw_leaky_relu(draw: Draw, x: Tensor, product: str) -> Params:
    alpha = draw.weighted({"small": 5, "above one": 1, "negative": 1, "zero": 0.5})
    value = {"small": draw.magnitude(-7, -2), "above one": 1 + draw.magnitude(-3, 0),
             "negative": -draw.magnitude(-6, -1), "zero": 0.0}[alpha]
    return {**draw_activation(draw, x, product), "alpha": float32(value)}


def draw_gelu(draw: Draw, x: Tensor, product: str) -> Params:
    return {**draw_activation(draw, x, product), "approximate": draw.chance(0.5)}


def curved_input(draw: Draw, dtype: str) -> Params:
    """An input over which a curve is interesting: reals up to a few units."""
    low = {"int16": -14}.get(dtype, -6)
    return {**signed_input(draw, dtype), "scale": draw.magnitude(low, low + 2)}


def draw_fixed(draw: Draw, x: Tensor, product: str) -> Params:
    return {}


def _apply_fixed(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        quant, real = FIXED_OUTPUT[opcode, x.dtype], x.sample * x.scale
        real = np.tanh(real) if opcode == "TANH" else 1 / (1 + np.exp(-real))
        y = net.tensor(opcode.lower(), x.shape, x.dtype, quant, settle(real, quant, x.dtype))
        net.operator(opcode, [x.index], [y])
        return [y]

    return apply


def exp_input(draw: Draw, dtype: str) -> Params:
    """Exponents of at most about 8 in size, so that the largest result doesn't drown the rest."""
    low = -14 if dtype == "int16" else -6
    return {**signed_input(draw, dtype), "scale": draw.magnitude(low, low + 1)}


def positive_input(draw: Draw, dtype: str) -> Params:
    """The lowest code stands for zero where the dtype has a zero point: LOG and RSQRT take no negative number."""
    return {**curved_input(draw, dtype), "zero_point": 0 if dtype == "int16" else -128}


def draw_curve(draw: Draw, x: Tensor, product: str) -> Params:
    return {"fill": float32(0.5 + draw.fraction()), "zero_point": draw_zero_point(draw, x.dtype, "middle")}


def _apply_curve(opcode: str, largest: Callable[[float, int, int], float]):
    """EXP, LOG, RSQRT; `largest(scale, low, high)` is the largest real result for codes low..high less zero point."""

    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        low, high = RANGES[x.dtype]
        top = largest(x.scale, low - x.quant.zero_point, high - x.quant.zero_point)
        quant = Quant(float32(top / high * p["fill"]), p["zero_point"])
        if opcode == "RSQRT" and x.dtype == "int16":  # the references stop at a negative number
            positive = net.tensor("positive", x.shape, x.dtype, x.quant, np.maximum(x.sample, 0))
            net.operator("RELU", [x.index], [positive])
            x = positive
        y = net.tensor(opcode.lower(), x.shape, x.dtype, quant)
        net.operator(opcode, [x.index], [y])
        return [y]

    return apply


def prelu_input(draw: Draw, dtype: str) -> Params:
    return map_input(draw, dtype)


def draw_prelu(draw: Draw, x: Tensor, product: str) -> Params:
    return {**draw_activation(draw, x, product), "seed": draw.seed(), "alpha_shape": draw.choice(["C", "11C", "1"]),
            "alpha_scale": draw.magnitude(-9, -5), "alpha_zero_point": draw_zero_point(draw, x.dtype)}


def apply_prelu(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    quant = x.quant if p["same_quant"] else output_quant(p["gain"], x.power * x.scale, p["zero_point"])
    depth = x.shape[-1]
    shape = {"C": (depth,), "11C": (1,) * (len(x.shape) - 2) + (depth,), "1": (1,)}[p["alpha_shape"]]
    alpha = net.constant_map(shape, x.dtype, p["alpha_scale"], p["alpha_zero_point"], Draw(p["seed"]))
    # Vela 5.2.0 gives up on this form ("Non-passthrough operation (Mul) could not run on NPU").
    require(x.dtype != "uint8" or p["same_quant"] or p["alpha_shape"] == "1"
            or alpha.sample.max() * p["alpha_scale"] > 1, "uint8, rescaled, and no slope above 1")
    y = net.tensor("prelu", x.shape, x.dtype, quant)
    net.operator("PRELU", [x.index, alpha.index], [y])
    return [y]


def draw_softmax(draw: Draw, x: Tensor, product: str) -> Params:
    return {"beta": draw.weighted({1.0: 6, 0.5: 1, 2.0: 1, float32(draw.magnitude(-4, 1)): 2})}


def apply_softmax(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    # A scaled exponent beyond this leaves the fixed-point range in which the reference works.
    require(p["beta"] * x.scale * (1 << (26 if x.dtype != "int16" else 16)) < 2**31, "beta * scale too large")
    y = net.tensor("softmax", x.shape, x.dtype, FIXED_OUTPUT["SOFTMAX", x.dtype])
    net.operator("SOFTMAX", [x.index], [y], {"beta": p["beta"]})
    return [y]


_ALL = ("int8", "uint8", "int16")
for _opcode, _dtypes in (("ABS", ("int8", "int16")), ("NEG", ("int8", "int16")), ("RELU", _ALL), ("RELU6", _ALL),
                         ("RELU_N1_TO_1", ("int8", "uint8")), ("RELU_0_TO_1", ("int8", "uint8"))):
    register(_opcode, signed_input, draw_activation, _apply_activation(_opcode), _dtypes)
for _opcode, _dtypes in (("ELU", ("int8",)), ("HARD_SWISH", ("int8", "uint8"))):
    register(_opcode, curved_input, draw_activation, _apply_activation(_opcode), _dtypes)
register("GELU", curved_input, draw_gelu, _apply_activation("GELU"), ("int8", "uint8"))
register("LEAKY_RELU", any_input, draw_leaky_relu, _apply_activation("LEAKY_RELU"), _ALL)
for _opcode in ("LOGISTIC", "TANH"):
    register(_opcode, curved_input, draw_fixed, _apply_fixed(_opcode), _ALL)
register("EXP", exp_input, draw_curve, _apply_curve("EXP", lambda s, low, high: math.exp(s * high)), ("int8", "int16"))
register("LOG", positive_input, draw_curve,
         _apply_curve("LOG", lambda s, low, high: max(abs(math.log(s)), abs(math.log(s * high)))), ("int8", "int16"))
register("RSQRT", positive_input, draw_curve, _apply_curve("RSQRT", lambda s, low, high: 1 / math.sqrt(s * 3)),
         ("int8", "int16"))
register("PRELU", prelu_input, draw_prelu, apply_prelu, ("int8", "uint8"))
register("SOFTMAX", curved_input, draw_softmax, apply_softmax, _ALL)

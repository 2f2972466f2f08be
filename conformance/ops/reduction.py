"""MEAN, SUM, REDUCE_MAX, REDUCE_MIN and ARG_MAX."""

from __future__ import annotations

import math

import numpy as np

from ..draw import Draw
from ..net import RANGES, Net, Tensor, output_quant, require
from ..registry import Params, register
from ..tflite_writer import Quant
from .common import DEPTHS, draw_gain, draw_map_shape, draw_quant, draw_zero_point, map_input

#: ARG_MAX's limit on the depth (Vela 5.2.0, SUPPORTED_OPS.md).
ARG_MAX_DEPTH = 127


def reduced_shape(shape: tuple[int, ...], axes: list[int], keep_dims: bool) -> list[int]:
    """Shape of a reduction's result."""
    require(all(0 <= a < len(shape) for a in axes), "axis")
    if keep_dims:
        return [1 if i in axes else n for i, n in enumerate(shape)]
    return [n for i, n in enumerate(shape) if i not in axes]


def draw_reduction(draw: Draw, x: Tensor, product: str) -> Params:
    axes = draw.weighted({(1, 2): 3, (1,): 2, (2,): 2, (3,): 2, (2, 3): 0.5, (1, 2, 3): 0.5})
    return {"axes": list(axes), "keep_dims": draw.chance(0.5)}


def draw_mean(draw: Draw, x: Tensor, product: str) -> Params:
    axes = draw.weighted({(1, 2): 5, (1,): 2, (2,): 2, (3,): 1})
    if axes == (3,) and min(x.shape[1:]) > 1:
        axes = (1, 2)
    return {"axes": list(axes), "keep_dims": draw.chance(0.5), "gain": draw_gain(draw, x.dtype),
            "same_quant": draw.chance(0.4), "zero_point": draw_zero_point(draw, x.dtype)}


def draw_sum(draw: Draw, x: Tensor, product: str) -> Params:
    axes = draw.weighted({(1,): 3, (2,): 3, (3,): 3, (1, 2): 0.5})
    return {"axes": list(axes), "keep_dims": draw.chance(0.5), "gain": draw_gain(draw, x.dtype),
            "same_quant": False, "zero_point": draw_zero_point(draw, x.dtype)}


def _apply(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        shape = reduced_shape(x.shape, p["axes"], p["keep_dims"])
        count = math.prod(x.shape[a] for a in p["axes"])
        quant = x.quant
        if opcode == "MEAN":
            require(x.shape[0] == 1, "batch")
            require(len(x.shape) - 1 not in p["axes"] or min(x.shape[1:]) == 1, "depth reduced beside H and W")
        if opcode in ("MEAN", "SUM") and not p["same_quant"]:
            sums = x.sample.sum(axis=tuple(p["axes"])).astype(np.float64).ravel()
            # What lies between the results is to span the codes; the zero point goes where it must for that.
            mean = float(sums.sum()) / sums.size
            spread = math.sqrt(float((sums - mean) @ (sums - mean)) / sums.size)
            unit = x.scale / count if opcode == "MEAN" else x.scale
            quant = output_quant(p["gain"], max(spread, 1.0) * unit, p["zero_point"])
            low, high = RANGES[x.dtype]
            if x.dtype != "int16":
                zero_point = round((low + high) / 2 - mean * unit / quant.scales[0])
                if not low <= zero_point <= high:
                    quant = output_quant(p["gain"], math.hypot(spread, mean) * unit, p["zero_point"])
                else:
                    quant = Quant(quant.scale, zero_point)
            else:
                quant = output_quant(p["gain"], max(math.hypot(spread, mean), 1.0) * unit, 0)
        y = net.tensor("reduced", shape, x.dtype, quant)
        net.operator(opcode, [x.index, net.parameter("axes", p["axes"])], [y], {"keep_dims": p["keep_dims"]})
        return [y]

    return apply


def arg_max_input(draw: Draw, dtype: str) -> Params:
    shape = draw_map_shape(draw, most=10)
    return {"shape": [*shape[:3], draw.choice((*DEPTHS, ARG_MAX_DEPTH))], **draw_quant(draw, dtype)}


def draw_arg_max(draw: Draw, x: Tensor, product: str) -> Params:
    return {"output": draw.choice(["int32", "int64"])}


def apply_arg_max(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(x.shape[-1] <= ARG_MAX_DEPTH, "depth")
    y = net.tensor("arg_max", x.shape[:-1], p["output"], None)
    output_type = {"int32": 2, "int64": 4}[p["output"]]
    net.operator("ARG_MAX", [x.index, net.parameter("axis", len(x.shape) - 1)], [y], {"output_type": output_type})
    return [y]


register("MEAN", map_input, draw_mean, _apply("MEAN"), ("int8", "uint8", "int16"))
register("SUM", map_input, draw_sum, _apply("SUM"), ("int8", "uint8", "int16"))
for _opcode in ("REDUCE_MAX", "REDUCE_MIN"):
    register(_opcode, map_input, draw_reduction, _apply(_opcode), ("int8", "uint8", "int16"))
register("ARG_MAX", arg_max_input, draw_arg_max, apply_arg_max, ("int8", "uint8"))

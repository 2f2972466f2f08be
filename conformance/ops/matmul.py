"""BATCH_MATMUL of two feature maps, the second an input or a constant."""

from __future__ import annotations

import math

from ..draw import Draw
from ..net import Net, Tensor, output_quant, require
from ..registry import Params, register
from .common import draw_gain, draw_quant, draw_zero_point


def matmul_input(draw: Draw, dtype: str) -> Params:
    rank = draw.integer(2, 4)
    shape = [draw.integer(1, 3) for _ in range(rank - 2)] + [draw.integer(1, 12), draw.integer(1, 40)]
    return {"shape": shape, **draw_quant(draw, dtype)}


def draw_matmul(draw: Draw, x: Tensor, product: str) -> Params:
    return {
        "seed": draw.seed(),
        "columns": draw.integer(1, 24),
        "adj_x": draw.chance(0.3),
        "adj_y": draw.chance(0.3),
        "other": {"kind": draw.weighted({"input": 3, "constant": 1}), **draw_quant(draw, x.dtype)},
        "gain": draw_gain(draw, x.dtype),
        "zero_point": draw_zero_point(draw, x.dtype),
    }


def apply_matmul(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(len(x.shape) >= 2, "rank")
    *batch, rows, depth = x.shape
    if p["adj_x"]:
        rows, depth = depth, rows
    shape = (*batch, p["columns"], depth) if p["adj_y"] else (*batch, depth, p["columns"])
    other = p["other"]
    if other["kind"] == "input":
        y = net.input(shape, x.dtype, other["scale"], other["zero_point"])
    else:
        y = net.constant_map(shape, x.dtype, other["scale"], other["zero_point"], Draw(p["seed"]))
    real = math.sqrt(depth) * x.power * y.power * x.scale * y.scale
    z = net.tensor("matmul", (*batch, rows, p["columns"]), x.dtype, output_quant(p["gain"], real, p["zero_point"]))
    net.operator("BATCH_MATMUL", [x.index, y.index], [z], {"adj_x": p["adj_x"], "adj_y": p["adj_y"]})
    return [z]


register("BATCH_MATMUL", matmul_input, draw_matmul, apply_matmul, ("int8",), ("int16",))

"""SLICE, STRIDED_SLICE and the paddings."""

from __future__ import annotations

import numpy as np

from ..draw import Draw
from ..net import RANGES, Net, Tensor, require
from ..registry import Params, register
from ..tflite_writer import Quant
from .common import any_input, map_input
from .shape import DTYPES, copy_of


def draw_slice(draw: Draw, x: Tensor, product: str) -> Params:
    begin = [draw.integer(0, n - 1) for n in x.shape]
    return {"begin": begin, "size": [draw.integer(1, n - b) for n, b in zip(x.shape, begin)],
            "to_end": draw.chance(0.2)}


def apply_slice(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    begin, size = p["begin"], p["size"]
    require(len(begin) == len(x.shape), "rank")
    require(all(b >= 0 and s >= 1 and b + s <= n for b, s, n in zip(begin, size, x.shape)), "slice outside")
    stored = list(size)
    if p["to_end"]:  # -1 stands for "all that is left"
        size = [*size[:-1], x.shape[-1] - begin[-1]]
        stored = [*size[:-1], -1]
    y = copy_of(net, "slice", x, x.sample[tuple(slice(b, b + s) for b, s in zip(begin, size))])
    net.operator("SLICE", [x.index, net.parameter("begin", begin), net.parameter("size", stored)], [y])
    return [y]


def draw_strided_slice(draw: Draw, x: Tensor, product: str) -> Params:
    p = draw_slice(draw, x, product)
    strides = [1] * len(x.shape)
    if len(x.shape) == 4 and draw.chance(0.5):  # Vela strides over H and W only
        strides[1:3] = [draw.integer(1, 3), draw.integer(1, 3)]
    return {"begin": p["begin"], "size": p["size"], "strides": strides,
            "begin_mask": draw.choice([0, 0, 1, 2, 5]), "end_mask": draw.choice([0, 0, 2, 4, 6]),
            "shrink": draw.chance(0.2), "negative_end": draw.chance(0.2)}


def apply_strided_slice(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    rank = len(x.shape)
    require(len(p["begin"]) == rank and len(p["strides"]) == rank, "rank")
    begin_mask, end_mask = p["begin_mask"] & ((1 << rank) - 1), p["end_mask"] & ((1 << rank) - 1)
    begin = list(p["begin"])
    end = [b + s for b, s in zip(begin, p["size"])]
    require(all(0 <= b < e <= n for b, e, n in zip(begin, end, x.shape)), "slice outside")
    shrink_axis = next((i for i, s in enumerate(p["size"]) if s == 1), None) if p["shrink"] and rank > 1 else None
    cuts, shrink_mask = [], 0
    for i, n in enumerate(x.shape):
        if i == shrink_axis:
            shrink_mask, begin_mask, end_mask = 1 << i, begin_mask & ~(1 << i), end_mask & ~(1 << i)
            cuts.append(begin[i])
            continue
        first = 0 if begin_mask >> i & 1 else begin[i]
        last = n if end_mask >> i & 1 else end[i]
        cuts.append(slice(first, last, p["strides"][i]))
    if p["negative_end"]:
        end = [e - n if e < n and i != shrink_axis else e for i, (e, n) in enumerate(zip(end, x.shape))]
    strides = [1 if i == shrink_axis else s for i, s in enumerate(p["strides"])]
    y = copy_of(net, "strided_slice", x, x.sample[tuple(cuts)])
    net.operator("STRIDED_SLICE",
                 [x.index, net.parameter("begin", begin), net.parameter("end", end), net.parameter("strides", strides)],
                 [y], {"begin_mask": begin_mask, "end_mask": end_mask, "shrink_axis_mask": shrink_mask})
    return [y]


def draw_pad(draw: Draw, x: Tensor, product: str) -> Params:
    paddings = [[draw.integer(0, 4), draw.integer(0, 4)] if draw.chance(0.6) else [0, 0] for _ in x.shape]
    if len(x.shape) == 4:
        paddings[0] = [0, 0]
    return {"paddings": paddings, "index": draw.weighted({"int32": 7, "int64": 1})}


def draw_padv2(draw: Draw, x: Tensor, product: str) -> Params:
    return {**draw_pad(draw, x, product), "value": draw.integer(*RANGES[x.dtype])}


def draw_mirror_pad(draw: Draw, x: Tensor, product: str) -> Params:
    mode = draw.choice(["REFLECT", "SYMMETRIC"])
    paddings = [[0, 0] for _ in x.shape]
    for axis in (1, 2) if draw.chance(0.9) else (1, 2, 3):
        most = min(x.shape[axis] - (mode == "REFLECT"), 4)
        paddings[axis] = [draw.integer(0, most), draw.integer(0, most)]
    return {"paddings": paddings, "mode": mode, "index": "int32"}


def _apply_pad(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        paddings = p["paddings"]
        require(len(paddings) == len(x.shape), "rank")
        options = {}
        if opcode == "MIRROR_PAD":
            reflect = p["mode"] == "REFLECT"
            require(all(max(pair) <= n - reflect for pair, n in zip(paddings, x.shape)), "padding beyond the input")
            options = {"mode": 0 if reflect else 1}
        mode = {"": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}[p.get("mode", "")]
        y = copy_of(net, "padded", x, np.pad(x.sample, paddings, mode))
        inputs = [x.index, net.parameter("paddings", paddings, p["index"])]
        if opcode == "PADV2":
            inputs.append(net.constant("value", [p["value"]], x.dtype, Quant(x.scale, x.quant.zero_point)))
        net.operator(opcode, inputs, [y], options)
        return [y]

    return apply


register("SLICE", any_input, draw_slice, apply_slice, DTYPES, ("int32",))
register("STRIDED_SLICE", any_input, draw_strided_slice, apply_strided_slice, DTYPES, ("int32",))
register("PAD", any_input, draw_pad, _apply_pad("PAD"), DTYPES, ("int32",))
register("PADV2", any_input, draw_padv2, _apply_pad("PADV2"), DTYPES)
register("MIRROR_PAD", map_input, draw_mirror_pad, _apply_pad("MIRROR_PAD"), DTYPES)

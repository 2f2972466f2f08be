"""Operators that move data without changing it: reshapes, transposition, joining and splitting, tiling."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np

from ..draw import Draw, float32
from ..net import Net, Tensor, require
from ..registry import Params, register
from .common import any_input, draw_any_shape, draw_map_shape, draw_quant, draw_scale

DTYPES = ("int8", "uint8", "int16")


def copy_of(net: Net, stem: str, x: Tensor, sample: np.ndarray) -> Tensor:
    """A tensor with x's quantisation and another shape, that of its sample."""
    return net.tensor(stem, sample.shape, x.dtype, x.quant, sample)


def draw_reshape(draw: Draw, x: Tensor, product: str) -> Params:
    return {"split": [draw.fraction() for _ in range(draw.integer(0, 3))]}


def apply_reshape(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    """Each number of `split` picks a divisor of what is left of the element count."""
    left, shape = math.prod(x.shape), []
    for fraction in p["split"]:
        divisors = [d for d in range(1, left + 1) if left % d == 0]
        shape.append(divisors[int(fraction * len(divisors))])
        left //= shape[-1]
    shape.append(left)
    y = copy_of(net, "reshaped", x, x.sample.reshape(shape))
    net.operator("RESHAPE", [x.index, net.parameter("shape", shape)], [y], {"new_shape": shape})
    return [y]


def squeeze_input(draw: Draw, dtype: str) -> Params:
    shape = draw_map_shape(draw)
    shape[draw.integer(1, 3)] = 1
    return {"shape": shape, **draw_quant(draw, dtype)}


def draw_squeeze(draw: Draw, x: Tensor, product: str) -> Params:
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    return {"axes": sorted(draw.shuffled(ones)[:draw.integer(1, max(1, len(ones)))])}


def apply_squeeze(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(all(a < len(x.shape) and x.shape[a] == 1 for a in p["axes"]), "axis is not 1")
    shape = [n for i, n in enumerate(x.shape) if i not in p["axes"]]
    require(bool(shape), "no axis left")
    y = copy_of(net, "squeezed", x, x.sample.reshape(shape))
    net.operator("SQUEEZE", [x.index], [y], {"squeeze_dims": p["axes"]})
    return [y]


def expand_input(draw: Draw, dtype: str) -> Params:
    return {"shape": draw_any_shape(draw)[-3:], **draw_quant(draw, dtype)}


def draw_expand(draw: Draw, x: Tensor, product: str) -> Params:
    return {"axis": draw.integer(0, len(x.shape))}


def apply_expand(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(p["axis"] <= len(x.shape), "axis")
    shape = list(x.shape)
    shape.insert(p["axis"], 1)
    y = copy_of(net, "expanded", x, x.sample.reshape(shape))
    net.operator("EXPAND_DIMS", [x.index, net.parameter("axis", p["axis"])], [y])
    return [y]


def transpose_input(draw: Draw, dtype: str) -> Params:
    shape = draw_any_shape(draw, lowest=2)
    return {"shape": shape, **draw_quant(draw, dtype)}


def draw_transpose(draw: Draw, x: Tensor, product: str) -> Params:
    orders = list(permutations(range(len(x.shape))))[1:]
    if x.dtype == "int32" and product != "u85":
        # Vela keeps int32 maps in place, or swaps H with W or W with C (SUPPORTED_OPS.md).
        orders = [o for o in orders if o in ((0, 2, 1, 3), (0, 1, 3, 2))] or [tuple(range(len(x.shape)))]
    elif len(x.shape) == 4 and draw.chance(0.8):
        orders = [o for o in orders if o[0] == 0]
    return {"order": list(draw.choice(orders))}


def apply_transpose(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(sorted(p["order"]) == list(range(len(x.shape))), "order")
    y = copy_of(net, "transposed", x, x.sample.transpose(p["order"]))
    net.operator("TRANSPOSE", [x.index, net.parameter("order", p["order"])], [y])
    return [y]


def draw_concatenation(draw: Draw, x: Tensor, product: str) -> Params:
    axis = draw.integer(0 if len(x.shape) < 4 else 1, len(x.shape) - 1)
    p = {"axis": axis, "seed": draw.seed(),
         "others": [{"kind": draw.weighted({"input": 4, "constant": 1}), "size": draw.integer(1, 12)}
                    for _ in range(draw.integer(1, 3))]}
    if x.dtype == "uint8" and draw.chance(0.5):  # the only dtype whose reference rescales its operands
        p["scales"] = [draw_scale(draw, x.dtype) for _ in p["others"]]
    return p


def apply_concatenation(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    axis = p["axis"]
    require(axis < len(x.shape), "axis")
    parts, draw = [x], Draw(p["seed"])
    for index, other in enumerate(p["others"]):
        shape = [other["size"] if i == axis else n for i, n in enumerate(x.shape)]
        scale = x.scale
        if "scales" in p:
            # Not too far from x, or nothing of the part is left. No simple ratio: it would give halves, which the
            # references and the NPU round differently.
            scale = float32(min(max(p["scales"][index], x.scale / 7.313), x.scale * 7.313))
        if other["kind"] == "input":
            parts.append(net.input(shape, x.dtype, scale, x.quant.zero_point))
        else:
            parts.append(net.constant_map(shape, x.dtype, scale, x.quant.zero_point, draw))
    if p.get("last"):
        parts.append(parts.pop(0))
    y = copy_of(net, "joined", x, np.concatenate([t.sample for t in parts], axis=axis))
    net.operator("CONCATENATION", [t.index for t in parts], [y], {"axis": axis, "activation": "NONE"})
    return [y]


def pack_input(draw: Draw, dtype: str) -> Params:
    return {"shape": draw_any_shape(draw)[-3:], **draw_quant(draw, dtype)}


def draw_pack(draw: Draw, x: Tensor, product: str) -> Params:
    return {"axis": draw.integer(0, len(x.shape)), "count": draw.integer(1, 4)}


def apply_pack(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(p["axis"] <= len(x.shape), "axis")
    parts = [x] + [net.input(x.shape, x.dtype, x.scale, x.quant.zero_point) for _ in range(p["count"] - 1)]
    y = copy_of(net, "packed", x, np.stack([t.sample for t in parts], axis=p["axis"]))
    net.operator("PACK", [t.index for t in parts], [y], {"axis": p["axis"], "values_count": p["count"]})
    return [y]


def unpack_input(draw: Draw, dtype: str) -> Params:
    return {"shape": draw_any_shape(draw, lowest=2), **draw_quant(draw, dtype)}


def draw_unpack(draw: Draw, x: Tensor, product: str) -> Params:
    few = [i for i, n in enumerate(x.shape) if n <= 6]
    return {"axis": draw.choice(few or [0])}


def apply_unpack(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(p["axis"] < len(x.shape) and len(x.shape) > 1, "axis")
    require(x.shape[p["axis"]] <= 12, "too many outputs")
    outputs = [copy_of(net, "part", x, part) for part in np.moveaxis(x.sample, p["axis"], 0)]
    net.operator("UNPACK", [x.index], outputs, {"axis": p["axis"], "num": len(outputs)})
    return outputs


def split_input(draw: Draw, dtype: str) -> Params:
    """Axes with divisors."""
    shape = draw_any_shape(draw, lowest=2)
    return {"shape": [n if i == 0 else n * draw.choice([1, 1, 2, 3, 4]) for i, n in enumerate(shape)],
            **draw_quant(draw, dtype)}


def draw_split(draw: Draw, x: Tensor, product: str) -> Params:
    axis = draw.integer(1 if len(x.shape) > 3 else 0, len(x.shape) - 1)
    return {"axis": axis, "count": draw.choice([d for d in range(1, 7) if x.shape[axis] % d == 0])}


def apply_split(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    axis, count = p["axis"], p["count"]
    require(axis < len(x.shape) and x.shape[axis] % count == 0, "uneven split")
    outputs = [copy_of(net, "part", x, part) for part in np.split(x.sample, count, axis)]
    net.operator("SPLIT", [net.parameter("axis", axis), x.index], outputs, {"num_splits": count})
    return outputs


def draw_split_v(draw: Draw, x: Tensor, product: str) -> Params:
    axis = draw.integer(1 if len(x.shape) > 3 else 0, len(x.shape) - 1)
    sizes, left = [], x.shape[axis]
    while left > 0 and len(sizes) < 4:
        sizes.append(draw.integer(1, left))
        left -= sizes[-1]
    sizes[-1] += left
    return {"axis": axis, "sizes": sizes}


def apply_split_v(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    """The last part takes up what the sizes leave."""
    axis, sizes = p["axis"], list(p["sizes"])
    require(axis < len(x.shape), "axis")
    sizes[-1] = x.shape[axis] - sum(sizes[:-1])
    require(all(s >= 1 for s in sizes), "empty part")
    outputs = [copy_of(net, "part", x, part) for part in np.split(x.sample, np.cumsum(sizes[:-1]), axis)]
    net.operator("SPLIT_V", [x.index, net.parameter("sizes", sizes), net.parameter("axis", axis)], outputs,
                 {"num_splits": len(sizes)})
    return outputs


def draw_tile(draw: Draw, x: Tensor, product: str) -> Params:
    multiples = [draw.choice([1, 1, 2, 3]) for _ in x.shape]
    if len(x.shape) == 4:
        multiples[0] = 1
    return {"multiples": multiples}


def apply_tile(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(len(p["multiples"]) == len(x.shape), "rank")
    y = copy_of(net, "tiled", x, np.tile(x.sample, p["multiples"]))
    net.operator("TILE", [x.index, net.parameter("multiples", p["multiples"])], [y])
    return [y]


def draw_reverse(draw: Draw, x: Tensor, product: str) -> Params:
    return {"axis": draw.integer(0, len(x.shape) - 1)}


def apply_reverse(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(p["axis"] < len(x.shape), "axis")
    y = copy_of(net, "reversed", x, np.flip(x.sample, p["axis"]))
    net.operator("REVERSE_V2", [x.index, net.parameter("axis", [p["axis"]])], [y])
    return [y]


register("RESHAPE", any_input, draw_reshape, apply_reshape, (*DTYPES, "int32"))
register("SQUEEZE", squeeze_input, draw_squeeze, apply_squeeze, (*DTYPES, "int32"))
register("EXPAND_DIMS", expand_input, draw_expand, apply_expand, (*DTYPES, "int32"))
register("TRANSPOSE", transpose_input, draw_transpose, apply_transpose, (*DTYPES, "int32"))
register("CONCATENATION", any_input, draw_concatenation, apply_concatenation, DTYPES, ("int32",))
register("PACK", pack_input, draw_pack, apply_pack, DTYPES, ("int32",))
register("UNPACK", unpack_input, draw_unpack, apply_unpack, DTYPES, ("int32",))
register("SPLIT", split_input, draw_split, apply_split, DTYPES, ("int32",))
register("SPLIT_V", any_input, draw_split_v, apply_split_v, DTYPES, ("int32",))
register("TILE", any_input, draw_tile, apply_tile, DTYPES, ("int32",))
register("REVERSE_V2", any_input, draw_reverse, apply_reverse, (), (*DTYPES, "int32"))

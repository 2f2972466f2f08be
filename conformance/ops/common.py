"""Draws that many operators share: shapes, quantisation, activations."""

from __future__ import annotations

from ..draw import Draw
from ..net import deviation
from ..registry import Params

#: Depths around the hardware's units of 4, 8, 16 and 32 channels.
DEPTHS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20, 24, 31, 32, 33, 40, 48, 64)

FUSED = {"NONE": 5, "RELU": 3, "RELU6": 2, "RELU_N1_TO_1": 1}


def draw_zero_point(draw: Draw, dtype: str, kind: str = "any") -> int:
    """A zero point: 0 for 16 and 32 bits. `kind` says where most of them lie.

    "low" suits results that are mostly positive, "middle" such as have either sign; under "any" the ends are frequent.
    """
    if dtype in ("int16", "int32", "bool"):
        return 0
    if kind == "low" and draw.chance(0.9):
        code = -128 if draw.chance(0.7) else draw.integer(-128, -64)
    elif kind == "middle" and draw.chance(0.95):
        code = 0 if draw.chance(0.3) else draw.integer(-80, 80)
    else:
        code = draw.weighted({-128: 3, 0: 3, 127: 1, draw.integer(-128, 127): 6})
    return code + (128 if dtype == "uint8" else 0)


def activation_side(activation: str) -> str:
    """Kind of zero point for the output of a fused activation."""
    return {"NONE": "any", "RELU_N1_TO_1": "middle"}.get(activation, "low")


def draw_scale(draw: Draw, dtype: str) -> float:
    """A scale that puts the range somewhere around 1..16, seldom one far below."""
    if dtype in ("int32", "bool"):
        return 1.0  # the references take 32-bit codes for what they are, and ignore scales
    if draw.chance(0.04):
        return draw.magnitude(-40, -25)
    low = -15 if dtype == "int16" else -7
    return draw.magnitude(low, low + 4)


def draw_quant(draw: Draw, dtype: str, kind: str = "any") -> Params:
    """Scale and zero point as parameters."""
    return {"scale": draw_scale(draw, dtype), "zero_point": draw_zero_point(draw, dtype, kind)}


def draw_gain(draw: Draw, dtype: str, *, vanishing: bool = False) -> float:
    """How many codes a layer's deviation is to span: mostly alive, sometimes saturating or nearly nothing.

    `vanishing` allows multipliers so small that the shift leaves its range.
    """
    kind = draw.weighted({"alive": 8, "saturating": 0.8, "faint": 0.8, "vanishing": 0.3 if vanishing else 0})
    factor = {"alive": draw.magnitude(-1, 0), "saturating": draw.magnitude(3, 6), "faint": draw.magnitude(-8, -4),
              "vanishing": draw.magnitude(-45, -20)}
    return deviation(dtype) * factor[kind]


def draw_map_shape(draw: Draw, *, most: int = 20, batch: bool = False) -> list[int]:
    """An NHWC shape; `batch` allows more than one image."""
    n = draw.integer(2, 3) if batch and draw.chance(0.1) else 1
    h, w = draw.integer(1, most), draw.integer(1, most)
    if draw.chance(0.1):
        h = 1
    if draw.chance(0.05):
        w = 1
    return [n, h, w, draw.choice(DEPTHS)]


def draw_any_shape(draw: Draw, *, lowest: int = 1, most: int = 12) -> list[int]:
    """A shape of rank `lowest` to 4 with a first axis of 1 from rank 3 on."""
    rank = draw.weighted({r: w for r, w in ((1, 1), (2, 2), (3, 3), (4, 6)) if r >= lowest})
    shape = draw_map_shape(draw, most=most)
    if rank == 3:
        return [1, *shape[2:]] if draw.chance(0.5) else shape[1:]
    return shape[4 - rank:]


def map_input(draw: Draw, dtype: str) -> Params:
    """A rank-4 input."""
    return {"shape": draw_map_shape(draw), **draw_quant(draw, dtype)}


def any_input(draw: Draw, dtype: str) -> Params:
    """An input of any rank up to 4."""
    return {"shape": draw_any_shape(draw), **draw_quant(draw, dtype)}


def signed_input(draw: Draw, dtype: str) -> Params:
    """An input of any rank up to 4, whose real values have either sign."""
    return {"shape": draw_any_shape(draw), **draw_quant(draw, dtype, "middle")}

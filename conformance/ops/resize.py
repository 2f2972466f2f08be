"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR by the factors that Vela takes."""

from __future__ import annotations

import numpy as np

from ..draw import Draw
from ..net import Net, Tensor, require
from ..registry import Params, register
from .common import draw_map_shape, draw_quant


def resize_input(draw: Draw, dtype: str) -> Params:
    shape = draw_map_shape(draw, most=7)
    if draw.chance(0.1):
        shape[1:3] = [1, 1]
    return {"shape": shape, **draw_quant(draw, dtype)}


def draw_resize(draw: Draw, x: Tensor, product: str) -> Params:
    mode = draw.weighted({"plain": 4, "align_corners": 3, "half_pixel_centers": 3})
    p = {"factor": draw.choice([2, 4, 8]), "mode": mode}
    if mode == "half_pixel_centers":
        p["factor"] = 2
    if x.shape[1:3] == (1, 1):
        p["free_size"] = [draw.integer(1, 12), draw.integer(1, 12)]
    return p


def _apply(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        require(len(x.shape) == 4, "rank")
        n, h, w, c = x.shape
        mode, factor = p["mode"], p["factor"]
        require(mode != "half_pixel_centers" or factor == 2, "half pixel centres need factor 2")
        if mode == "align_corners":
            size = [(h - 1) * factor + 1, (w - 1) * factor + 1]
        else:
            size = [h * factor, w * factor]
        if (h, w) == (1, 1):
            size = p.get("free_size", size)
        rows, columns = (np.arange(s) * m // s for s, m in zip(size, (h, w)))
        y = net.tensor("resized", (n, *size, c), x.dtype, x.quant, x.sample[:, rows][:, :, columns])
        net.operator(opcode, [x.index, net.parameter("size", size)], [y],
                     {} if mode == "plain" else {mode: True})
        return [y]

    return apply


for _opcode in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"):
    register(_opcode, resize_input, draw_resize, _apply(_opcode), ("int8", "uint8", "int16"))

"""Average and maximum pooling. Output and input have the same quantisation, as the references demand."""

from __future__ import annotations

from .. import simulate
from ..draw import Draw
from ..net import RANGES, Net, Tensor, require, settle
from ..registry import Params, register
from .common import FUSED, map_input
from .convolution import window_output


def draw_pool(draw: Draw, x: Tensor, product: str) -> Params:
    padding = draw.choice(["SAME", "VALID"])
    longest = draw.weighted({2: 3, 3: 3, 8: 2, 20: 1 if padding == "VALID" else 0})
    kernel = [draw.integer(1, longest), draw.integer(1, longest)]
    if padding == "VALID":
        kernel = [min(k, s) for k, s in zip(kernel, x.shape[1:3])]
        if draw.chance(0.15):
            kernel = list(x.shape[1:3])  # global
    stride = [draw.integer(1, 3), draw.integer(1, 3)]
    if draw.chance(0.3):
        stride = [max(1, min(k, 3)) for k in kernel]
    if padding == "VALID" and draw.chance(0.05):
        stride = [draw.integer(1, 6), draw.integer(1, 6)]
    activation = draw.weighted(FUSED)
    if x.quant.zero_point > RANGES[x.dtype][1] // 2 + RANGES[x.dtype][0] // 2 + 64:
        activation = "NONE"  # next to nothing is positive
    return {"kernel": kernel, "stride": stride, "padding": padding, "activation": activation}


def _apply(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        require(len(x.shape) == 4, "rank")
        n, h, w, c = x.shape
        if p["padding"] == "SAME":
            require(max(p["kernel"]) <= 8, "SAME kernel above 8")
            require(max(p["stride"]) <= 3, "SAME stride above 3")
        size = [window_output(s, p["kernel"][i], p["stride"][i], 1, p["padding"]) for i, s in enumerate((h, w))]
        pooled = simulate.pool(x.sample, p, opcode == "AVERAGE_POOL_2D")
        sample = settle(pooled * x.scale, x.quant, x.dtype, p["activation"])
        y = net.tensor("pool", (n, *size, c), x.dtype, x.quant, sample)
        net.operator(opcode, [x.index], [y], {
            "padding": p["padding"], "stride_h": p["stride"][0], "stride_w": p["stride"][1],
            "filter_height": p["kernel"][0], "filter_width": p["kernel"][1], "activation": p["activation"]})
        return [y]

    return apply


for _opcode in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
    register(_opcode, map_input, draw_pool, _apply(_opcode), ("int8", "uint8", "int16"))

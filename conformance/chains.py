"""Networks of 3 to 10 layers: small ones of many operators, wide ones that get striped and cascaded, heavy ones
whose weights get streamed."""

from __future__ import annotations

import math

from .draw import Draw
from .net import Net, Tensor, deviation
from .ops.common import draw_quant, draw_zero_point
from .registry import OPERATORS, Params

#: Kinds of chain.
CHAINS = ("CHAIN", "CHAIN_LARGE", "BIG_WEIGHTS")
CHAIN_DTYPES = ("int8", "uint8", "int16")

#: Operators of a chain's layers and how often each comes. All of them keep a map of rank 4.
LAYERS: dict[str, dict[str, float]] = {
    "CHAIN": {"CONV_2D": 5, "DEPTHWISE_CONV_2D": 3, "AVERAGE_POOL_2D": 1, "MAX_POOL_2D": 1, "ADD": 3, "SUB": 1,
              "MUL": 1, "MAXIMUM": 0.5, "RELU": 0.5, "LEAKY_RELU": 0.5, "LOGISTIC": 0.5, "TANH": 0.5, "PAD": 1,
              "CONCATENATION": 1, "RESIZE_BILINEAR": 0.5, "RESIZE_NEAREST_NEIGHBOR": 0.5, "TRANSPOSE_CONV": 1,
              "STRIDED_SLICE": 0.5},
    "CHAIN_LARGE": {"CONV_2D": 5, "DEPTHWISE_CONV_2D": 4, "MAX_POOL_2D": 0.5, "AVERAGE_POOL_2D": 0.5, "ADD": 3,
                    "RELU": 0.5},
    "BIG_WEIGHTS": {"CONV_2D": 5, "DEPTHWISE_CONV_2D": 1, "ADD": 1},
}

#: A chain's map stays below this many elements, and a layer's work below this many multiply-accumulates.
ELEMENT_LIMIT = {"CHAIN": 1 << 15, "CHAIN_LARGE": 1 << 18, "BIG_WEIGHTS": 1 << 15}
MAC_LIMIT = {"CHAIN": 4 << 20, "CHAIN_LARGE": 24 << 20, "BIG_WEIGHTS": 24 << 20}


def chain_input(draw: Draw, kind: str, dtype: str) -> Params:
    """The network's input."""
    if kind == "CHAIN_LARGE":
        side, depth = (32, 80), (3, 8, 16, 24, 33)
    elif kind == "BIG_WEIGHTS":
        side, depth = (3, 8), (64, 96, 128)
    else:
        side, depth = (6, 24), (1, 3, 4, 8, 16, 17, 24)
    shape = [1, draw.integer(*side), draw.integer(*side), draw.choice(depth)]
    quant = draw_quant(draw, dtype)
    return {"shape": shape, **quant, "scale": max(quant["scale"], 2.0**-15)}


def draw_chain_layer(draw: Draw, net: Net, x: Tensor, kind: str, product: str) -> Params:
    """One layer for the map x; its own output is checked by the caller."""
    op = draw.weighted({name: w for name, w in LAYERS[kind].items() if x.dtype in OPERATORS[name].dtypes})
    p = {"op": op, **OPERATORS[op].draw_layer(draw, x, product)}
    if "gain" in p and draw.chance(0.9):  # a dead or saturated layer would hide all that follows
        p["gain"] = deviation(x.dtype) * draw.magnitude(-1, 0)
    if p.get("channel_octaves", 0) > 4 and draw.chance(0.8):
        p["channel_octaves"] = 1
    if p.get("weights") == "zeros":
        p["weights"] = "bell"
    if "scale" in p:
        p["scale"] = max(p["scale"], 2.0**-15)
    if p.get("activation") == "NONE" and "zero_point" in p:
        p["zero_point"] = draw_zero_point(draw, x.dtype, "middle")
    if isinstance(p.get("other"), dict) and "zero_point" in p["other"]:
        p["other"]["zero_point"] = draw_zero_point(draw, x.dtype, "middle")
    p.pop("cancel", None)
    p.pop("scales", None)  # halves round differently in the references: one would spoil all that follows
    if op == "STRIDED_SLICE":
        p["shrink"] = False  # the next layers want all four axes
    if kind != "CHAIN" and "kernel" in p and "channels" in p:
        p["kernel"] = [min(k, 3) for k in p["kernel"]]
        p["stride"] = [1 if draw.chance(0.7) else min(s, 2) for s in p["stride"]]
    if kind == "BIG_WEIGHTS" and op == "CONV_2D":
        p["channels"] = draw.choice((96, 128, 192, 256))
    if "other" in p:
        skips = [back for back in range(1, len(net.history)) if net.history[-1 - back].shape == x.shape]
        if skips and draw.chance(0.6) and not p.get("same_quant"):
            p["other"] = {"kind": "skip", "back": draw.choice(skips), "first": p["other"]["first"]}
            p["equal_scales"] = False
    return p


def draw_tail(draw: Draw, x: Tensor, product: str) -> list[Params]:
    """What often ends a classifier: reshape, fully connected, softmax."""
    flat = {"op": "RESHAPE", "split": [0.0]}
    row = Tensor(0, (1, math.prod(x.shape)), x.dtype, x.quant, x.sample)
    dense = {"op": "FULLY_CONNECTED", **OPERATORS["FULLY_CONNECTED"].draw_layer(draw, row, product),
             "activation": "NONE", "gain": deviation(x.dtype)}
    scale = draw.magnitude(-14, -13) if x.dtype == "int16" else draw.magnitude(-7, -5)  # logits of a few units
    dense |= {"scale": scale, "weights": "bell", "bias_reach": 1.0, "channel_octaves": 0}
    return [flat, dense, {"op": "SOFTMAX", "beta": 1.0}]

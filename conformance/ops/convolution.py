"""Convolutions, transposed ones, and fully connected layers: everything with weights and biases."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .. import simulate
from ..draw import Draw, float32
from ..net import Net, Tensor, require, settle
from ..registry import Params, register
from ..tflite_writer import Quant
from .common import DEPTHS, FUSED, activation_side, draw_gain, draw_map_shape, draw_quant, map_input

#: Absolute weights of one output channel may add up to this (Vela 5.2.0, SUPPORTED_OPS.md).
WEIGHT_SUM_LIMIT = 8323072

#: Output positions from which a channel's deviation is estimated at least, and the smallest one assumed.
POSITIONS = 32
LEAST_DEVIATION = 16.0

#: Bounds of a multiplier: TFLite's kernels shift sums of 8-bit layers left in 32 bits, and int16 layers take no
#: multiplier of 2**15 or more.
LARGEST_SCALED = 2.0**28
LARGEST_MULTIPLIER = 2.0**12

#: Weight distributions; each leads the weight encoder to another of its modes.
WEIGHTS = {"bell": 5, "uniform": 3, "sparse": 2, "few": 2, "extreme": 1, "single": 1, "zeros": 0.3}

#: Weights of which two of every four input channels are zero, instead of those above: how often none, and each kind.
#: Vela 5.2.0 makes sparse weights of them for U85; the few values make its fast format pay, too.
PRUNED = {"none": 8, "pruned": 1.5, "pruned few": 0.5}


def draw_weights(draw: Draw, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Integer weights in -127..127 (extreme: -128 too), zero point not included."""
    if kind == "uniform":
        return draw.integers(-127, 127, shape)
    if kind in ("few", "pruned few"):
        few = draw.integers(0, 3, shape) * 5 - 7
        return few if kind == "few" else few * _two_of_four(draw, shape)
    if kind == "extreme":
        return np.where(draw.integers(0, 1, shape) == 1, 127, -128)
    if kind == "single":
        return np.full(shape, draw.integer(1, 127))
    if kind == "zeros":
        return np.zeros(shape, np.int64)
    bell = sum(draw.integers(-31, 31, shape) for _ in range(4))
    if kind == "sparse":
        return bell * (draw.integers(0, 4, shape) == 0)
    if kind == "pruned":
        return bell * _two_of_four(draw, shape)
    require(kind == "bell", f"weights {kind!r}")
    return bell


def _two_of_four(draw: Draw, shape: tuple[int, ...]) -> np.ndarray:
    """True for two of every four elements along the last axis, any two.

    The last axis holds the input channels. What makes weights sparse for Vela 5.2.0 stands in `SparsityTracker`,
    regor/architecture/ethosu85/ethos_u85_weight_encoder.cpp.
    """
    groups = (*shape[:-1], -(-shape[-1] // 4), 1)
    first, step = draw.integers(0, 3, groups), draw.integers(1, 3, groups)
    places = np.arange(4)
    kept = (places == first) | (places == (first + step) % 4)
    return kept.reshape(*shape[:-1], -1)[..., :shape[-1]]


def prune(draw: Draw, p: Params, product: str) -> Params:
    """Sometimes takes pruned weights instead, for U85. Drawn last, so that the other cases stay what they were."""
    if product != "u85":
        return p
    kind = draw.weighted(PRUNED)
    return p if kind == "none" else {**p, "weights": kind}


def draw_weight_params(draw: Draw, dtype: str) -> Params:
    """Parameters of weights, biases, output quantisation and fused activation."""
    activation = draw.weighted(FUSED)
    params = {
        "seed": draw.seed(),
        "weights": draw.weighted(WEIGHTS),
        "per_channel": dtype != "uint8" and draw.chance(0.7),
        "channel_octaves": draw.weighted({0: 3, 1: 3, 4: 2, 10: 1}),
        "bias": draw.weighted({"int64": 3, "int32": 1} if dtype == "int16" else {"int32": 1}),
        "bias_reach": draw.weighted({0.0: 1, 1.0: 5, 8.0: 1}),
        "gain": draw_gain(draw, dtype, vanishing=True),
        "activation": activation,
        **draw_quant(draw, dtype, activation_side(activation)),
    }
    if dtype == "uint8":
        params["weight_zero_point"] = draw.weighted({128: 2, 0: 1, 255: 1, draw.integer(1, 254): 4})
    return params


def add_weights(
    net: Net, x: Tensor, p: Params, shape: tuple[int, ...], axis: int,
    accumulate: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[list[int], Quant, np.ndarray]:
    """Adds weight and bias tensors; returns their indices, the output's quantisation and its sample.

    The weight scales are chosen so that the output's deviation is `gain` codes, and the biases so that its
    mean is near the zero point. `accumulate(sample, weights)` computes the layer's sums.
    """
    draw = Draw(p["seed"])
    weights = draw_weights(draw, p["weights"], shape)
    weight_zero_point = p.get("weight_zero_point", 0)
    dtype = "uint8" if x.dtype == "uint8" else "int8"
    if dtype == "uint8":
        weights = np.clip(weights + weight_zero_point, 0, 255) - weight_zero_point
    channels = shape[axis]
    require(np.abs(np.moveaxis(weights, axis, 0)).reshape(channels, -1).sum(axis=1).max() <= WEIGHT_SUM_LIMIT,
            "weights too large")
    sums = accumulate(x.sample, weights)
    positions = sums.size // channels
    spread = [sums]
    if positions < POSITIONS:  # too few to tell a deviation from: look at the sample in other orders too
        spread += [accumulate(draw.permutation(x.sample.ravel()).reshape(x.shape), weights)
                   for _ in range(-(-POSITIONS // positions))]
    flat = np.concatenate([s.reshape(-1, channels) for s in spread])
    means, deviations = simulate.deviations(flat)
    # Input that hardly varies, or weights of 0, would ask for a multiplier under which the references overflow.
    magnitude = np.sqrt((np.moveaxis(weights, axis, 0).reshape(channels, -1) ** 2).sum(axis=1)) * x.power
    deviations = np.maximum(deviations, np.maximum(magnitude / 64, LEAST_DEVIATION))
    if p["per_channel"]:
        octaves = p["channel_octaves"]
        uneven = [2.0 ** draw.integer(-octaves, octaves) * (1 + draw.fraction()) for _ in range(channels)]
        multipliers = p["gain"] / deviations * np.array(uneven)
    else:
        multipliers = np.array([p["gain"] / (float(np.rint(deviations).sum()) / channels)])
    limits = np.minimum(LARGEST_SCALED / (np.abs(flat).max(axis=0) + 16 * deviations), LARGEST_MULTIPLIER)
    multipliers = np.minimum(multipliers, limits if p["per_channel"] else limits.min())
    scales = tuple(float32(m * p["scale"] / x.scale) for m in multipliers)
    require(all(1e-37 < s < 1e37 for s in scales), "weight scale outside float32")
    quant = Quant(scales, weight_zero_point, axis)
    indices = [net.constant("weights", weights + weight_zero_point, dtype, quant)]
    if p["bias"] != "none":
        reach = p["bias_reach"] * deviations
        bias = np.rint([(2 * draw.fraction() - 1) * r for r in reach]) - np.rint(means)
        limit = 2**30 if p["bias"] == "int32" else 2**38
        bias = np.clip(bias, -limit, limit).astype(np.int64)
        bias_scales = tuple(float32(x.scale * s) for s in scales)
        indices.append(net.constant("bias", bias, p["bias"], Quant(bias_scales)))
        sums = sums + bias
    out = Quant(p["scale"], p["zero_point"])
    return indices, out, settle(sums * (x.scale * np.array(scales)), out, x.dtype, p["activation"])


def window_output(size: int, kernel: int, stride: int, dilation: int, padding: str) -> int:
    """Output size along one axis."""
    reach = (kernel - 1) * dilation + 1
    if padding == "SAME":
        return -(-size // stride)
    require(reach <= size, "kernel larger than its input")
    return (size - reach) // stride + 1


def draw_window(draw: Draw, shape: tuple[int, ...], *, stride_limit: int = 3) -> Params:
    """Kernel, stride, dilation and padding for a feature map."""
    longest = draw.weighted({1: 2, 3: 6, 5: 3, 8: 1, 12: 1})
    kernel = [draw.integer(1, longest), draw.integer(1, longest)]
    if draw.chance(0.3):
        kernel = [longest, longest]
    stride = [draw.weighted({1: 6, 2: 3, 3: 1}), 1]
    stride[1] = stride[0] if draw.chance(0.7) else draw.integer(1, 3)
    dilation = [1, 1]
    if draw.chance(0.2):
        dilation = [draw.integer(1, 3), draw.integer(1, 3)]
    padding = draw.choice(["SAME", "VALID"])
    if stride_limit > 3 and draw.chance(0.05):
        stride, dilation, padding = [draw.integer(1, stride_limit), draw.integer(1, stride_limit)], [1, 1], "VALID"
    if padding == "VALID":
        for axis in (0, 1):
            kernel[axis] = min(kernel[axis], shape[1 + axis])
            if (kernel[axis] - 1) * dilation[axis] + 1 > shape[1 + axis]:
                dilation[axis] = 1
    return {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding}


def check_window(p: Params) -> None:
    """Vela's limits for strides (SUPPORTED_OPS.md)."""
    if max(p["stride"]) > 3:
        require(p["padding"] == "VALID" and max(p["dilation"]) == 1, "stride above 3 needs VALID and no dilation")


def window_options(p: Params) -> Params:
    """The options of a convolution."""
    return {"padding": p["padding"], "stride_h": p["stride"][0], "stride_w": p["stride"][1],
            "dilation_h": p["dilation"][0], "dilation_w": p["dilation"][1], "activation": p["activation"]}


def draw_conv(draw: Draw, x: Tensor, product: str) -> Params:
    p = draw_window(draw, x.shape, stride_limit=5)
    return prune(draw, {**p, "channels": draw.choice(DEPTHS), **draw_weight_params(draw, x.dtype)}, product)


def apply_conv(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(len(x.shape) == 4, "rank")
    check_window(p)
    n, h, w, c = x.shape
    size = [window_output(s, p["kernel"][i], p["stride"][i], p["dilation"][i], p["padding"])
            for i, s in enumerate((h, w))]
    indices, quant, sample = add_weights(net, x, p, (p["channels"], *p["kernel"], c), 0,
                                         lambda data, weights: simulate.conv(data, weights, p))
    y = net.tensor("conv", (n, *size, p["channels"]), x.dtype, quant, sample)
    net.operator("CONV_2D", [x.index, *indices], [y], window_options(p))
    return [y]


def draw_depthwise(draw: Draw, x: Tensor, product: str) -> Params:
    p = draw_window(draw, x.shape)
    multiplier = draw.integer(2, 8) if x.shape[3] == 1 and draw.chance(0.7) else 1
    p = {**p, "depth_multiplier": multiplier, **draw_weight_params(draw, x.dtype)}
    if x.dtype == "int16":
        p["bias"] = "int64"
    return p


def apply_depthwise(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(len(x.shape) == 4, "rank")
    require(max(p["stride"]) <= 3, "stride above 3")
    require(x.dtype != "int16" or p["bias"] == "int64", "LiteRT takes no other bias here")
    n, h, w, c = x.shape
    size = [window_output(s, p["kernel"][i], p["stride"][i], p["dilation"][i], p["padding"])
            for i, s in enumerate((h, w))]
    channels = c * p["depth_multiplier"]
    indices, quant, sample = add_weights(net, x, p, (1, *p["kernel"], channels), 3,
                                         lambda data, weights: simulate.depthwise(data, weights, p))
    y = net.tensor("depthwise", (n, *size, channels), x.dtype, quant, sample)
    net.operator("DEPTHWISE_CONV_2D", [x.index, *indices], [y],
                 {**window_options(p), "depth_multiplier": p["depth_multiplier"]})
    return [y]


def draw_transpose_conv(draw: Draw, x: Tensor, product: str) -> Params:
    h, w = x.shape[1:3]
    kernel = [draw.integer(1, 5), draw.integer(1, 5)]
    # Vela takes equal strides of 1 or 2, and 2 along one axis if everything is 1 along the other.
    stride = [2, 2] if draw.chance(0.75) else [1, 1]
    if h == 1 and draw.chance(0.5):
        kernel[0], stride = 1, [1, 2]
    elif w == 1 and draw.chance(0.5):
        kernel[1], stride = 1, [2, 1]
    padding = draw.choice(["SAME", "VALID"])
    p = {"kernel": kernel, "stride": stride, "padding": padding, "channels": draw.choice(DEPTHS[:16]),
         **draw_weight_params(draw, x.dtype)}
    if x.dtype == "int16":
        p["bias"] = "int64"
    if draw.chance(0.1):
        p["bias"] = "none"
    return prune(draw, p, product)


def apply_transpose_conv(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(len(x.shape) == 4, "rank")
    require(x.dtype != "int16" or p["bias"] != "int32", "the references read 64-bit biases, whatever the tensor says")
    n, h, w, c = x.shape
    stride, kernel = p["stride"], p["kernel"]
    if stride[0] != stride[1]:
        one = 0 if stride[0] == 1 else 1
        require(x.shape[1 + one] == 1 and kernel[one] == 1, "uneven stride")
    size = [s * t for s, t in zip((h, w), stride)]
    if p["padding"] == "VALID":
        size = [s + max(k - t, 0) for s, k, t in zip(size, kernel, stride)]
        require(all(k >= t for k, t in zip(kernel, stride)), "VALID kernel smaller than its stride")
    out = (n, *size, p["channels"])
    indices, quant, sample = add_weights(net, x, p, (p["channels"], *kernel, c), 0,
                                         lambda data, weights: simulate.transpose_conv(data, weights, p, size))
    y = net.tensor("transpose_conv", out, x.dtype, quant, sample)
    net.operator("TRANSPOSE_CONV", [net.parameter("output_shape", out), indices[0], x.index, *indices[1:]], [y],
                 {"padding": p["padding"], "stride_h": stride[0], "stride_w": stride[1],
                  "activation": p["activation"]})
    return [y]


def fully_connected_input(draw: Draw, dtype: str) -> Params:
    """Mostly one row; sometimes several, or a map that the operator flattens."""
    kind = draw.weighted({"row": 6, "rows": 3, "map": 1})
    depth = draw.choice((*DEPTHS, 96, 128, 200, 256))
    shape = [draw.integer(2, 9) if kind == "rows" else 1, depth]
    if kind == "map":
        shape = [1, draw.integer(1, 4), draw.integer(1, 4), draw.choice(DEPTHS)]
    return {"shape": shape, **draw_quant(draw, dtype)}


def draw_fully_connected(draw: Draw, x: Tensor, product: str) -> Params:
    p = {"channels": draw.choice((*DEPTHS, 100, 128)), "keep_num_dims": False, **draw_weight_params(draw, x.dtype)}
    if len(x.shape) == 4 and math.prod(x.shape[1:3]) == 1:
        p["keep_num_dims"] = draw.chance(0.3)
    if draw.chance(0.15):
        p["bias"] = "none"
    return prune(draw, p, product)


def apply_fully_connected(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    rows = x.shape[0] if len(x.shape) == 2 else 1
    depth = x.shape[1] if len(x.shape) == 2 else math.prod(x.shape)
    require(len(x.shape) == 2 or x.shape[0] == 1, "batch")
    indices, quant, sample = add_weights(
        net, x, p, (p["channels"], depth), 0,
        lambda data, weights: data.reshape(rows, depth).astype(np.float64) @ weights.T)
    shape = (rows, p["channels"])
    if p["keep_num_dims"]:
        require(depth == x.shape[-1], "keep_num_dims needs all but the last axis to be 1")
        shape = (*x.shape[:-1], p["channels"])
    y = net.tensor("fully_connected", shape, x.dtype, quant, sample.reshape(shape))
    net.operator("FULLY_CONNECTED", [x.index, *indices], [y],
                 {"activation": p["activation"], "keep_num_dims": p["keep_num_dims"]})
    return [y]


def transpose_conv_input(draw: Draw, dtype: str) -> Params:
    shape = draw_map_shape(draw, most=10)
    return {"shape": shape, **draw_quant(draw, dtype)}


_DTYPES = ("int8", "uint8", "int16")
register("CONV_2D", map_input, draw_conv, apply_conv, _DTYPES)
register("DEPTHWISE_CONV_2D", map_input, draw_depthwise, apply_depthwise, _DTYPES)
register("TRANSPOSE_CONV", transpose_conv_input, draw_transpose_conv, apply_transpose_conv, _DTYPES)
register("FULLY_CONNECTED", fully_connected_input, draw_fully_connected, apply_fully_connected, _DTYPES)

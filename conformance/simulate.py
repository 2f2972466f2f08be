"""Layers computed on sample data, so that the generator can scale each output to what really arrives there.

Samples are int64 arrays of code - zero_point. Sums are exact in float64, so their order, and with it the
machine, doesn't matter. The rounding is only near to any kernel's: the samples choose scales, nothing else.
"""

from __future__ import annotations

import numpy as np


def padding_before(size: int, kernel: int, stride: int, dilation: int, padding: str) -> tuple[int, int]:
    """TFLite's padding before and after one axis."""
    if padding == "VALID":
        return 0, 0
    total = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def _taps(x: np.ndarray, p: dict[str, object], fill: float = 0.0):
    """(ky, kx, the input under that kernel element for every output position)."""
    kernel, stride = p["kernel"], p["stride"]
    dilation = p.get("dilation", [1, 1])
    pads = [padding_before(x.shape[1 + i], kernel[i], stride[i], dilation[i], p["padding"]) for i in (0, 1)]
    wide = np.pad(x.astype(np.float64), ((0, 0), *pads, (0, 0)), constant_values=fill)
    size = [(wide.shape[1 + i] - (kernel[i] - 1) * dilation[i] - 1) // stride[i] + 1 for i in (0, 1)]
    for ky in range(kernel[0]):
        for kx in range(kernel[1]):
            top, left = ky * dilation[0], kx * dilation[1]
            yield ky, kx, wide[:, top:top + (size[0] - 1) * stride[0] + 1:stride[0],
                               left:left + (size[1] - 1) * stride[1] + 1:stride[1]]


def conv(x: np.ndarray, weights: np.ndarray, p: dict[str, object]) -> np.ndarray:
    """Accumulators of CONV_2D; weights are [O, KH, KW, I]."""
    total = 0.0
    for ky, kx, part in _taps(x, p):
        total = total + part @ weights[:, ky, kx].T.astype(np.float64)
    return total


def depthwise(x: np.ndarray, weights: np.ndarray, p: dict[str, object]) -> np.ndarray:
    """Accumulators of DEPTHWISE_CONV_2D; weights are [1, KH, KW, O]."""
    total = 0.0
    repeat = weights.shape[3] // x.shape[3]
    for ky, kx, part in _taps(x, p):
        total = total + np.repeat(part, repeat, axis=3) * weights[0, ky, kx]
    return total


def transpose_conv(x: np.ndarray, weights: np.ndarray, p: dict[str, object], size: list[int]) -> np.ndarray:
    """Accumulators of TRANSPOSE_CONV with an output of `size`."""
    kernel, stride = p["kernel"], p["stride"]
    full = [(x.shape[1 + i] - 1) * stride[i] + kernel[i] for i in (0, 1)]
    out = np.zeros((x.shape[0], max(full[0], size[0]), max(full[1], size[1]), weights.shape[0]))
    for ky in range(kernel[0]):
        for kx in range(kernel[1]):
            out[:, ky:ky + (x.shape[1] - 1) * stride[0] + 1:stride[0],
                kx:kx + (x.shape[2] - 1) * stride[1] + 1:stride[1]] += x @ weights[:, ky, kx].T.astype(np.float64)
    first = [max(full[i] - size[i], 0) // 2 for i in (0, 1)]
    return out[:, first[0]:first[0] + size[0], first[1]:first[1] + size[1]]


def pool(x: np.ndarray, p: dict[str, object], average: bool) -> np.ndarray:
    """AVERAGE_POOL_2D (of the real taps) or MAX_POOL_2D."""
    if not average:
        return np.maximum.reduce([part for _, _, part in _taps(x, p, -np.inf)])
    count = sum(part for _, _, part in _taps(np.ones_like(x), p))
    return sum(part for _, _, part in _taps(x, p)) / count


def deviations(accumulators: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation (at least 1) of each channel, from sums that are exact."""
    flat = accumulators.reshape(-1, accumulators.shape[-1])
    largest = float(np.abs(flat).max())
    step = 2.0 ** max(0, int(largest).bit_length() - 20)
    coarse = np.rint(flat / step).astype(np.int64)
    mean = coarse.sum(axis=0) / len(coarse)
    square = (coarse * coarse).sum(axis=0) / len(coarse)
    return mean * step, np.maximum(np.sqrt(np.maximum(square - mean * mean, 0.0)) * step, 1.0)

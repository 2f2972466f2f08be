"""A small convolutional network in NumPy, trained to the same bits on any machine.

BLAS libraries sum in different orders on different processors, so an ordinary training run isn't
reproducible elsewhere. Here every operand of a matrix product is first rounded to a fixed grid, coarse
enough for the product's float64 sums to be exact: their order can't matter then. `exact_matmul` checks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

#: Grid steps, as negative powers of two. Together they stay below float64's 53 bits.
VALUE_BITS = 16  # weights and activations
GRADIENT_BITS = 24


def on_grid(x: np.ndarray, bits: int) -> np.ndarray:
    """Rounds to multiples of 2**-bits."""
    return np.rint(x * 2.0**bits) / 2.0**bits


def exact_matmul(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """Matrix product of operands whose products are multiples of 2**-bits; AssertionError if a sum could round."""
    bound = min(np.abs(a).max() * np.abs(b).sum(axis=0).max(),
                np.abs(a).sum(axis=1).max() * np.abs(b).max())
    assert bound * 2.0**bits < 2.0**53, "a sum may round: use a coarser grid"
    return a @ b


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Padding before and after one axis, as TFLite's SAME defines it."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


@dataclass
class Layer:
    """One layer. `weights` are HWIO for conv and depthwise (I = 1 there), IO for dense."""

    kind: str  # conv, depthwise, average_pool, flatten, dense
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    channels: int = 0
    relu: bool = False
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None
    cache: dict[str, np.ndarray] = field(default_factory=dict)
    gradients: list[np.ndarray] = field(default_factory=list)

    @property
    def padding(self) -> str:
        """Convolutions pad to SAME, pools don't pad."""
        return "VALID" if self.kind == "average_pool" else "SAME"

    def initialise(self, shape: tuple[int, ...], rng: np.random.RandomState) -> tuple[int, ...]:
        """Draws the weights for an input of this shape (without batch); returns the output's shape."""
        if self.kind == "flatten":
            return (int(np.prod(shape)),)
        if self.kind == "dense":
            wanted, fan_in = (shape[0], self.channels), shape[0]
            out: tuple[int, ...] = (self.channels,)
        else:
            h, w, c = shape
            if self.kind == "conv":
                wanted, fan_in = (*self.kernel, c, self.channels), c * int(np.prod(self.kernel))
            else:
                self.channels = c
                wanted, fan_in = (*self.kernel, 1, c), int(np.prod(self.kernel))
            cut = (0, 0) if self.padding == "SAME" else (self.kernel[0] - 1, self.kernel[1] - 1)
            out = (-(-(h - cut[0]) // self.stride[0]), -(-(w - cut[1]) // self.stride[1]), self.channels)
            if self.kind == "average_pool":
                return out
        self.weights = on_grid(rng.standard_normal(wanted) * (2.0 / fan_in) ** 0.5, VALUE_BITS)
        self.bias = np.zeros(self.channels)
        return out

    def windows(self, x: np.ndarray, pad_value: float = 0.0) -> np.ndarray:
        """Kernel windows of a padded batch: shape [N, OH, OW, KH, KW, C]."""
        (kh, kw), (sy, sx) = self.kernel, self.stride
        if self.padding == "SAME":
            pads = (same_padding(x.shape[1], kh, sy), same_padding(x.shape[2], kw, sx))
            x = np.pad(x, ((0, 0), *pads, (0, 0)), constant_values=pad_value)
        view = np.lib.stride_tricks.sliding_window_view(x, (kh, kw), axis=(1, 2))
        return np.ascontiguousarray(view[:, ::sy, ::sx].transpose(0, 1, 2, 4, 5, 3))

    def linear(self, x: np.ndarray, weights: np.ndarray | None, bits: int) -> np.ndarray:
        """The layer's sum without bias and activation; pools give the sum over the window."""
        if self.kind == "flatten":
            return x.reshape(len(x), -1)
        if self.kind == "dense":
            return exact_matmul(x, weights, bits)
        win = self.windows(x)
        n, oh, ow, kh, kw, c = win.shape
        if self.kind == "average_pool":
            return win.sum(axis=(3, 4))
        if self.kind == "depthwise":
            return np.stack([exact_matmul(win[..., i].reshape(-1, kh * kw), weights[..., 0, i].reshape(-1, 1), bits)
                             .reshape(n, oh, ow) for i in range(c)], axis=-1)
        return exact_matmul(win.reshape(n * oh * ow, -1), weights.reshape(-1, self.channels), bits).reshape(
            n, oh, ow, self.channels)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Output for a batch; keeps what `backward` needs."""
        self.cache["x"] = x
        y = self.linear(x, self.weights, 2 * VALUE_BITS)
        if self.kind == "average_pool":
            y = on_grid(y / np.prod(self.kernel), VALUE_BITS)
        if self.bias is not None:
            y = on_grid(y + self.bias, VALUE_BITS)
        if self.relu:
            y = np.maximum(y, 0.0)
        self.cache["y"] = y
        return y

    def backward(self, dy: np.ndarray) -> np.ndarray:
        """Gradient of the input; leaves the weight and bias gradients in `gradients`."""
        x = self.cache["x"]
        if self.kind == "flatten":
            return dy.reshape(x.shape)
        dy = on_grid(dy * (self.cache["y"] > 0) if self.relu else dy, GRADIENT_BITS)
        bits = VALUE_BITS + GRADIENT_BITS
        if self.kind == "dense":
            self.gradients = [exact_matmul(x.T, dy, bits), dy.sum(axis=0)]
            return on_grid(exact_matmul(dy, self.weights.T, bits), GRADIENT_BITS)
        if self.kind == "average_pool":
            taps = np.broadcast_to(on_grid(dy / np.prod(self.kernel), GRADIENT_BITS)[:, :, :, None, None],
                                   (*dy.shape[:3], *self.kernel, dy.shape[3]))
            return self._scatter(taps, x.shape)
        win = self.windows(x)
        n, oh, ow, kh, kw, c = win.shape
        if self.kind == "depthwise":
            flat = dy.reshape(-1, c)
            dw = np.stack([exact_matmul(win[..., i].reshape(-1, kh * kw).T, flat[:, i:i + 1], bits).reshape(kh, kw, 1)
                           for i in range(c)], axis=-1)
            taps = dy[:, :, :, None, None] * self.weights[None, None, None, :, :, 0]
        else:
            flat = dy.reshape(-1, self.channels)
            dw = exact_matmul(win.reshape(n * oh * ow, -1).T, flat, bits).reshape(self.weights.shape)
            taps = exact_matmul(flat, self.weights.reshape(-1, self.channels).T, bits).reshape(win.shape)
        self.gradients = [dw, flat.sum(axis=0)]
        return self._scatter(taps, x.shape)

    def _scatter(self, taps: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Adds the gradients of overlapping windows up: the transpose of `windows`."""
        (kh, kw), (sy, sx) = self.kernel, self.stride
        _, h, w, _ = shape
        (top, bottom), (left, right) = ((0, 0), (0, 0))
        if self.padding == "SAME":
            (top, bottom), (left, right) = same_padding(h, kh, sy), same_padding(w, kw, sx)
        out = np.zeros((shape[0], h + top + bottom, w + left + right, shape[3]))
        _, oh, ow = taps.shape[:3]
        for y in range(kh):
            for x in range(kw):
                out[:, y:y + sy * oh:sy, x:x + sx * ow:sx][:, :oh, :ow] += taps[:, :, :, y, x]
        return on_grid(out[:, top:top + h, left:left + w], GRADIENT_BITS)


def run(layers: Sequence[Layer], x: np.ndarray) -> list[np.ndarray]:
    """Output of every layer."""
    outputs = []
    for layer in layers:
        x = layer.forward(x)
        outputs.append(x)
    return outputs


def train(
    layers: Sequence[Layer], x: np.ndarray, labels: np.ndarray, rng: np.random.RandomState, *,
    epochs: int, batch: int = 32, rate: float = 3e-3, augment=None,
) -> None:
    """Trains with Adam on the cross entropy of the last layer's outputs, the rate falling linearly to 0."""
    shape = x.shape[1:]
    for layer in layers:
        shape = layer.initialise(shape, rng)
    trained = [layer for layer in layers if layer.weights is not None]
    moments = [[(np.zeros_like(p), np.zeros_like(p)) for p in (layer.weights, layer.bias)] for layer in trained]
    steps = epochs * (len(x) // batch)
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for first in range(0, len(x) - batch + 1, batch):
            chosen = order[first:first + batch]
            inputs = x[chosen] if augment is None else augment(x[chosen], rng)
            logits = run(layers, on_grid(inputs, VALUE_BITS))[-1]
            exps = np.exp(logits - logits.max(axis=1, keepdims=True))
            gradient = exps / exps.sum(axis=1, keepdims=True)
            gradient[np.arange(batch), labels[chosen]] -= 1.0
            gradient = on_grid(gradient / batch, GRADIENT_BITS)
            for layer in reversed(layers):
                gradient = layer.backward(gradient)
            step += 1
            for layer, pairs in zip(trained, moments):
                for index, (name, g) in enumerate(zip(("weights", "bias"), layer.gradients)):
                    m, v = pairs[index]
                    m += 0.1 * (g - m)
                    v += 0.001 * (g * g - v)
                    unbiased = m / (1.0 - 0.9**step), v / (1.0 - 0.999**step)
                    change = rate * (1.0 - step / steps) * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
                    setattr(layer, name, on_grid(getattr(layer, name) - change, VALUE_BITS))

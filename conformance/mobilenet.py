"""A network of MobileNetV2's size (224x224x3 int8, about 300 M multiply-accumulates) for speed measurements.

    python -m conformance.mobilenet --out FILE.tflite

The weights are random, but each layer is scaled to what really reaches it for a sample image, so that
activations neither die nor saturate on the way to the 1000 outputs. The same file comes out every time.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from . import ops  # noqa: F401  (registers the operators)
from .draw import Draw
from .net import Net, Tensor, output_quant, settle
from .ops.binary import spread
from .registry import OPERATORS, Params

#: Inverted residual blocks: expansion, output channels, repeats, stride of the first (Sandler et al. 2018, table 2).
BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

#: Pixels 0..255 as codes; the network sees -1..1.
INPUT_SCALE, INPUT_ZERO_POINT = 1 / 127.5, 0

#: Deviation of each layer's output in codes: three of them on either side still fit.
GAIN = 40.0

#: Scale of the logits: with a deviation of about 4.4, some of the 1000 probabilities stand out and none is nearly 1.
LOGIT_SCALE = 30 / 255


class Builder:
    """Adds layers; keeps the running tensor and a counter that seeds the weights."""

    def __init__(self) -> None:
        self.net = Net("npukit: a network of MobileNetV2's size with random weights")
        self.x = self.net.input((1, 224, 224, 3), "int8", INPUT_SCALE, INPUT_ZERO_POINT)
        self.x = Tensor(self.x.index, self.x.shape, self.x.dtype, self.x.quant, _image())
        self._layers = 0

    def weighted(self, op: str, activation: str, **geometry: object) -> None:
        """A convolution, depthwise or fully connected layer."""
        self._layers += 1
        params: Params = {
            "seed": self._layers, "weights": "bell", "per_channel": True, "channel_octaves": 0, "bias": "int32",
            "bias_reach": 0.5, "gain": GAIN, "activation": activation, "scale": 6 / 255,
            "zero_point": -128 if activation == "RELU6" else 0, **geometry,
        }
        self.x = OPERATORS[op].apply(self.net, self.x, params)[0]

    def conv(self, channels: int, kernel: int, stride: int, activation: str) -> None:
        """A CONV_2D layer."""
        self.weighted("CONV_2D", activation, channels=channels, kernel=[kernel, kernel], stride=[stride, stride],
                      dilation=[1, 1], padding="SAME")

    def depthwise(self, stride: int) -> None:
        """A 3x3 DEPTHWISE_CONV_2D layer."""
        self.weighted("DEPTHWISE_CONV_2D", "RELU6", depth_multiplier=1, kernel=[3, 3], stride=[stride, stride],
                      dilation=[1, 1], padding="SAME")

    def add(self, other: Tensor) -> None:
        """A residual ADD."""
        x = self.x
        real = x.sample * x.scale + other.sample * other.scale
        quant = output_quant(GAIN, spread(real), 0)
        y = self.net.tensor("add", x.shape, x.dtype, quant, settle(real, quant, x.dtype))
        self.net.operator("ADD", [x.index, other.index], [y], {"activation": "NONE", "pot_scale_int16": False})
        self.x = y

    def block(self, expansion: int, channels: int, stride: int) -> None:
        """An inverted residual block."""
        start = self.x
        if expansion > 1:
            self.conv(start.shape[3] * expansion, 1, 1, "RELU6")
        self.depthwise(stride)
        self.conv(channels, 1, 1, "NONE")
        if stride == 1 and start.shape == self.x.shape:
            self.add(start)


def _image() -> np.ndarray:
    """A smooth random image with some noise, as codes less zero point."""
    draw = Draw("mobilenet image")
    coarse = draw.integers(-128, 127, (1, 14, 14, 3))
    wide = np.repeat(np.repeat(coarse, 16, axis=1), 16, axis=2)
    return np.clip((3 * wide + draw.integers(-128, 127, wide.shape)) // 4, -128, 127)


def build() -> bytes:
    """The model's bytes."""
    b = Builder()
    b.conv(32, 3, 2, "RELU6")
    for expansion, channels, repeats, stride in BLOCKS:
        for i in range(repeats):
            b.block(expansion, channels, stride if i == 0 else 1)
    b.conv(1280, 1, 1, "RELU6")
    pooled = OPERATORS["AVERAGE_POOL_2D"].apply(
        b.net, b.x, {"kernel": [7, 7], "stride": [1, 1], "padding": "VALID", "activation": "NONE"})[0]
    b.x = OPERATORS["RESHAPE"].apply(b.net, pooled, {"split": [0.0]})[0]
    b.weighted("FULLY_CONNECTED", "NONE", channels=1000, keep_num_dims=False, scale=LOGIT_SCALE, gain=GAIN / 2)
    b.x = OPERATORS["SOFTMAX"].apply(b.net, b.x, {"beta": 1.0})[0]
    return b.net.finish([b.x])


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="conformance.mobilenet", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    model = build()
    args.out.write_bytes(model)
    print(f"{args.out}: {len(model)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())

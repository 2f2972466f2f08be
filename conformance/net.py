"""A network under construction: a model writer that also knows what sample data looks like in each tensor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from . import schema
from .draw import Draw, float32
from .tflite_writer import ModelWriter, Quant

#: Integer range of each dtype.
RANGES: dict[str, tuple[int, int]] = {
    "int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767),
    "int32": (-(1 << 31), (1 << 31) - 1), "bool": (0, 1),
}

#: Input codes of an int32 tensor stay within this: the references' int32 products wrap beyond.
INT32_INPUT = (1 << 15) - 1


#: Elements of the largest tensor.
ELEMENT_LIMIT = 1 << 22


class Invalid(ValueError):
    """Parameters that describe no valid model."""


def require(condition: bool, reason: str) -> None:
    """Raises `Invalid` unless the condition holds."""
    if not condition:
        raise Invalid(reason)


@dataclass(frozen=True)
class Tensor:
    """A feature map in the network.

    `sample` is an int64 array of code - zero_point: what arrives here for some random input.
    """

    index: int
    shape: tuple[int, ...]
    dtype: str
    quant: Quant | None
    sample: np.ndarray

    @property
    def scale(self) -> float:
        """The tensor's one scale."""
        require(self.quant is not None, "a tensor without quantisation")
        return self.quant.scales[0]

    @cached_property
    def power(self) -> float:
        """Root mean square of the sample, at least 1."""
        return max(math.sqrt(int((self.sample * self.sample).sum()) / self.sample.size), 1.0)


def deviation(dtype: str) -> float:
    """A standard deviation, in codes, at which a tensor of this dtype is well filled but rarely saturates."""
    return {"int8": 32.0, "uint8": 32.0, "int16": 7000.0, "int32": 1e6, "bool": 0.5}[dtype]


class Net:
    """Builds one model. Layers take and return `Tensor`s."""

    def __init__(self, description: str) -> None:
        self.writer = ModelWriter(description)
        self.inputs: list[int] = []
        #: Lowest and highest code to feed to each input.
        self.input_ranges: list[tuple[int, int]] = []
        #: Outputs of the layers so far, the network's input first: what a skip connection can reach.
        self.history: list[Tensor] = []
        self._names: dict[str, int] = {}

    def name(self, stem: str) -> str:
        """A tensor name that isn't taken yet."""
        count = self._names.get(stem, 0)
        self._names[stem] = count + 1
        return stem if count == 0 else f"{stem}_{count}"

    def input(
        self, shape: Sequence[int], dtype: str, scale: float, zero_point: int, *, codes: tuple[int, int] | None = None
    ) -> Tensor:
        """A graph input; its sample is drawn uniformly from the range of codes to feed to it."""
        low, high = codes or input_range(dtype)
        self.input_ranges.append((low, high))
        sample = Draw("input", len(self.inputs), *shape).integers(low, high, shape) - zero_point
        t = self.tensor("input", shape, dtype, Quant(scale, zero_point), sample)
        self.inputs.append(t.index)
        return t

    def tensor(
        self, stem: str, shape: Sequence[int], dtype: str, quant: Quant | None, sample: np.ndarray | None = None,
        *, variable: bool = False,
    ) -> Tensor:
        """An activation tensor. Without a sample it gets a bell-shaped one."""
        shape = tuple(int(n) for n in shape)
        require(all(n >= 1 for n in shape), f"shape {shape}")
        require(math.prod(shape) <= ELEMENT_LIMIT, "too many elements")
        if sample is None:
            reach = int(deviation(dtype)) if dtype in RANGES else 1
            draw = Draw("sample", *shape)
            sample = sum(draw.integers(-reach, reach, shape) for _ in range(3))
        require(sample.shape == shape, f"a sample of shape {sample.shape} for a tensor of shape {shape}")
        index = self.writer.tensor(self.name(stem), shape, dtype, quant, variable=variable)
        return Tensor(index, shape, dtype, quant, sample)

    def constant_map(
        self, shape: Sequence[int], dtype: str, scale: float, zero_point: int, draw: Draw
    ) -> Tensor:
        """A constant feature map of uniform random codes."""
        codes = draw.integers(*input_range(dtype), shape)
        quant = Quant(scale, zero_point)
        index = self.writer.tensor(self.name("constant"), shape, dtype, quant, codes)
        return Tensor(index, tuple(shape), dtype, quant, codes - zero_point)

    def parameter(self, stem: str, values: Sequence[int] | np.ndarray, dtype: str = "int32") -> int:
        """A constant parameter tensor (axes, shapes, paddings), without quantisation."""
        return self.writer.constant(self.name(stem), np.asarray(values), dtype)

    def constant(self, stem: str, values: np.ndarray, dtype: str, quant: Quant | None = None) -> int:
        """A constant tensor such as weights."""
        return self.writer.constant(self.name(stem), values, dtype, quant)

    def operator(
        self, opcode: str, inputs: Sequence[int], outputs: Sequence[Tensor],
        options: Mapping[str, object] | None = None, *, intermediates: Sequence[int] = (),
    ) -> None:
        """Appends an operator. Its version is the one that the converter writes for the first output's dtype."""
        options = dict(options or {})
        if isinstance(options.get("activation"), str):
            options["activation"] = schema.ACTIVATIONS[options["activation"]]
        if isinstance(options.get("padding"), str):
            options["padding"] = schema.PADDINGS[options["padding"]]
        version = schema.VERSIONS.get(opcode, {}).get(outputs[0].dtype, 1)
        self.writer.operator(opcode, inputs, [t.index for t in outputs], options, version=version,
                             intermediates=intermediates)

    def finish(self, outputs: Sequence[Tensor]) -> bytes:
        """The model's bytes."""
        return self.writer.finish(self.inputs, [t.index for t in outputs])


def input_range(dtype: str) -> tuple[int, int]:
    """Codes to feed to an input of this dtype."""
    return RANGES[dtype] if dtype != "int32" else (-INT32_INPUT, INT32_INPUT)


def settle(real: np.ndarray, quant: Quant, dtype: str, activation: str = "NONE") -> np.ndarray:
    """Sample of a tensor that holds these real numbers, after the activation, rounding and saturation.

    Raises `Invalid` when the activation's upper bound is no int32 code.
    """
    scale, zero_point = quant.scales[0], quant.zero_point
    low, high = RANGES[dtype][0] - zero_point, RANGES[dtype][1] - zero_point
    bottom, top = {"RELU": (0.0, math.inf), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0),
                   "RELU_0_TO_1": (0.0, 1.0)}.get(activation, (-math.inf, math.inf))
    require(top == math.inf or top / scale < 2**31, "an activation's bound beyond int32")
    return np.rint(np.clip(real / scale, max(low, bottom / scale), min(high, top / scale))).astype(np.int64)


def output_quant(gain: float, real_deviation: float, zero_point: int) -> Quant:
    """Quantisation under which a real deviation spans `gain` codes."""
    return Quant(float32(max(real_deviation / gain, 1e-30)), zero_point)

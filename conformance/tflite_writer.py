"""Writes quantised .tflite files with the flatbuffers package, without TensorFlow.

Shortest use:

    model = ModelWriter("double")
    x = model.tensor("x", (1, 8), "int8", Quant(0.5))
    y = model.tensor("y", (1, 8), "int8", Quant(1.0))
    model.operator("QUANTIZE", [x], [y])
    data = model.finish([x], [y])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import flatbuffers
import numpy as np

from . import schema

#: Vela reads constants in place and needs every buffer on a 16-byte boundary.
BUFFER_ALIGNMENT = 16

#: Tensor index of an optional operator input that is left out.
ABSENT = -1


@dataclass(frozen=True)
class Quant:
    """Affine quantisation: real = scale * (code - zero_point).

    `scale` is one number, or one number per channel along `axis`.
    """

    scale: float | tuple[float, ...]
    zero_point: int = 0
    axis: int = 0

    @property
    def scales(self) -> tuple[float, ...]:
        """The scales as a tuple, whether there is one or one per channel."""
        return self.scale if isinstance(self.scale, tuple) else (self.scale,)


@dataclass
class _Tensor:
    name: str
    shape: tuple[int, ...]
    dtype: str
    quant: Quant | None
    buffer: int
    variable: bool
    signature: tuple[int, ...] | None


@dataclass
class _Operator:
    opcode: str
    version: int
    inputs: list[int]
    outputs: list[int]
    options: dict[str, object]
    intermediates: list[int] = field(default_factory=list)


class ModelWriter:
    """One subgraph under construction."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._tensors: list[_Tensor] = []
        self._operators: list[_Operator] = []
        self._buffers: list[bytes] = [b""]  # buffer 0 is the empty one, by the schema's rule

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: str,
        quant: Quant | None = None,
        data: np.ndarray | None = None,
        *,
        variable: bool = False,
        signature: Sequence[int] | None = None,
    ) -> int:
        """Adds a tensor and returns its index; `data` makes it a constant.

        `signature` is the shape with -1 for a dynamic axis.
        Raises ValueError when the data's shape or values don't fit.
        """
        shape = tuple(int(n) for n in shape)
        buffer = 0
        if data is not None:
            wanted = np.dtype(schema.TENSOR_TYPES[dtype][1])
            array = np.asarray(data)
            stored = array.astype(wanted)
            if stored.shape != shape:
                raise ValueError(f"{name}: data of shape {stored.shape}, tensor of shape {shape}")
            if not np.array_equal(stored, array):
                raise ValueError(f"{name}: values do not fit {dtype}")
            buffer = len(self._buffers)
            self._buffers.append(stored.tobytes())
        self._tensors.append(
            _Tensor(name, shape, dtype, quant, buffer, variable,
                    None if signature is None else tuple(signature))
        )
        return len(self._tensors) - 1

    def constant(
        self, name: str, data: np.ndarray, dtype: str = "int32", quant: Quant | None = None
    ) -> int:
        """Adds a constant tensor of the data's own shape."""
        array = np.asarray(data)
        return self.tensor(name, array.shape, dtype, quant, array)

    def operator(
        self,
        opcode: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: dict[str, object] | None = None,
        *,
        version: int = 1,
        intermediates: Sequence[int] = (),
    ) -> None:
        """Appends an operator; operators run in the order they are added."""
        known = schema.OPTIONS.get(opcode)
        for name in options or {}:
            if known is None or name not in known.fields:
                raise ValueError(f"{opcode} has no option {name!r}")
        self._operators.append(
            _Operator(opcode, version, list(inputs), list(outputs), dict(options or {}),
                      list(intermediates))
        )

    def shape(self, tensor: int) -> tuple[int, ...]:
        """Shape of a tensor."""
        return self._tensors[tensor].shape

    def dtype(self, tensor: int) -> str:
        """Dtype name of a tensor."""
        return self._tensors[tensor].dtype

    def quant(self, tensor: int) -> Quant | None:
        """Quantisation of a tensor."""
        return self._tensors[tensor].quant

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """Serialises the model with the given graph inputs and outputs."""
        b = flatbuffers.Builder(1024)
        codes: dict[tuple[str, int], int] = {}
        for op in self._operators:
            codes.setdefault((op.opcode, op.version), len(codes))

        buffers = _offsets(b, [_buffer(b, data) for data in self._buffers])
        tensors = _offsets(b, [_tensor(b, t) for t in self._tensors])
        operators = _offsets(
            b, [_operator(b, op, codes[op.opcode, op.version]) for op in self._operators]
        )
        opcodes = _offsets(b, [_operator_code(b, name, version) for name, version in codes])
        subgraph_name = b.CreateString("main")
        subgraph = _table(b, 5, [
            (0, tensors), (1, _int32s(b, inputs)), (2, _int32s(b, outputs)), (3, operators),
            (4, subgraph_name),
        ])
        subgraphs = _offsets(b, [subgraph])
        description = b.CreateString(self._description)
        b.StartObject(8)
        b.PrependUint32Slot(0, schema.SCHEMA_VERSION, 0)
        for slot, offset in ((1, opcodes), (2, subgraphs), (3, description), (4, buffers)):
            b.PrependUOffsetTRelativeSlot(slot, offset, 0)
        b.Finish(b.EndObject(), file_identifier=schema.FILE_IDENTIFIER)
        return bytes(b.Output())


def _offsets(b: flatbuffers.Builder, items: Sequence[int]) -> int:
    b.StartVector(4, len(items), 4)
    for item in reversed(items):
        b.PrependUOffsetTRelative(item)
    return b.EndVector()


def _int32s(b: flatbuffers.Builder, values: Sequence[int]) -> int:
    return b.CreateNumpyVector(np.asarray(values, dtype="<i4"))


def _table(b: flatbuffers.Builder, slots: int, offsets: Sequence[tuple[int, int]]) -> int:
    b.StartObject(slots)
    for slot, offset in offsets:
        b.PrependUOffsetTRelativeSlot(slot, offset, 0)
    return b.EndObject()


def _buffer(b: flatbuffers.Builder, data: bytes) -> int:
    if not data:
        return _table(b, 1, [])
    b.StartVector(1, len(data), BUFFER_ALIGNMENT)
    b.head = b.Head() - len(data)
    b.Bytes[b.Head() : b.Head() + len(data)] = data
    return _table(b, 1, [(0, b.EndVector())])


def _quantization(b: flatbuffers.Builder, quant: Quant) -> int:
    scales = np.asarray(quant.scales, dtype="<f4")
    scale = b.CreateNumpyVector(scales)
    zero_point = b.CreateNumpyVector(np.full(len(scales), quant.zero_point, dtype="<i8"))
    b.StartObject(7)
    b.PrependUOffsetTRelativeSlot(2, scale, 0)
    b.PrependUOffsetTRelativeSlot(3, zero_point, 0)
    b.PrependInt32Slot(6, quant.axis, 0)
    return b.EndObject()


def _tensor(b: flatbuffers.Builder, t: _Tensor) -> int:
    name = b.CreateString(t.name)
    shape = _int32s(b, t.shape)
    signature = 0 if t.signature is None else _int32s(b, t.signature)
    quantization = 0 if t.quant is None else _quantization(b, t.quant)
    b.StartObject(9)
    b.PrependUOffsetTRelativeSlot(0, shape, 0)
    b.PrependInt8Slot(1, schema.TENSOR_TYPES[t.dtype][0], 0)
    b.PrependUint32Slot(2, t.buffer, 0)
    b.PrependUOffsetTRelativeSlot(3, name, 0)
    b.PrependUOffsetTRelativeSlot(4, quantization, 0)
    b.PrependBoolSlot(5, t.variable, 0)
    b.PrependUOffsetTRelativeSlot(7, signature, 0)
    # has_rank tells a scalar (rank 0) from a tensor whose rank is unknown.
    b.PrependBoolSlot(8, not t.shape, 0)
    return b.EndObject()


def _operator_code(b: flatbuffers.Builder, opcode: str, version: int) -> int:
    code = schema.BUILTIN_CODES[opcode]
    b.StartObject(4)
    # Codes above 127 only fit the newer field; readers take the larger of the two.
    b.PrependInt8Slot(0, min(code, 127), 0)
    b.PrependInt32Slot(2, version, 1)
    b.PrependInt32Slot(3, code, 0)
    return b.EndObject()


def _options(b: flatbuffers.Builder, op: _Operator) -> tuple[int, int]:
    table = schema.OPTIONS.get(op.opcode)
    if table is None:
        return 0, 0
    vectors = {
        name: _int32s(b, op.options[name])
        for name, spec in table.fields.items()
        if spec.kind == "int32s" and name in op.options
    }
    b.StartObject(max((spec.slot for spec in table.fields.values()), default=-1) + 1)
    for name, spec in table.fields.items():
        if name in vectors:
            b.PrependUOffsetTRelativeSlot(spec.slot, vectors[name], 0)
        elif name in op.options:
            value = op.options[name]
            if spec.kind == "int8":
                b.PrependInt8Slot(spec.slot, int(value), int(spec.default))
            elif spec.kind == "int32":
                b.PrependInt32Slot(spec.slot, int(value), int(spec.default))
            elif spec.kind == "bool":
                b.PrependBoolSlot(spec.slot, bool(value), bool(spec.default))
            else:
                b.PrependFloat32Slot(spec.slot, float(value), float(spec.default))
    return table.type_id, b.EndObject()


def _operator(b: flatbuffers.Builder, op: _Operator, opcode_index: int) -> int:
    inputs = _int32s(b, op.inputs)
    outputs = _int32s(b, op.outputs)
    intermediates = _int32s(b, op.intermediates) if op.intermediates else 0
    options_type, options = _options(b, op)
    b.StartObject(9)
    b.PrependUint32Slot(0, opcode_index, 0)
    b.PrependUOffsetTRelativeSlot(1, inputs, 0)
    b.PrependUOffsetTRelativeSlot(2, outputs, 0)
    b.PrependUint8Slot(3, options_type, 0)
    b.PrependUOffsetTRelativeSlot(4, options, 0)
    b.PrependUOffsetTRelativeSlot(8, intermediates, 0)
    return b.EndObject()

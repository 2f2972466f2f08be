"""Numbers of the public TFLite schema (schema.fbs, version 3) that the writer needs.

Slots are the field indices of the flatbuffer tables, in declaration order.
"""

from __future__ import annotations

from typing import NamedTuple

SCHEMA_VERSION = 3
FILE_IDENTIFIER = b"TFL3"

#: `BuiltinOperator` codes of the operators that Vela 5.2.0 lists in SUPPORTED_OPS.md.
BUILTIN_CODES: dict[str, int] = {
    "ADD": 0, "AVERAGE_POOL_2D": 1, "CONCATENATION": 2, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 4,
    "FULLY_CONNECTED": 9, "LOGISTIC": 14, "MAX_POOL_2D": 17, "MUL": 18, "RELU": 19,
    "RELU_N1_TO_1": 20, "RELU6": 21, "RESHAPE": 22, "RESIZE_BILINEAR": 23, "SOFTMAX": 25,
    "TANH": 28, "PAD": 34, "GATHER": 36, "TRANSPOSE": 39, "MEAN": 40, "SUB": 41, "DIV": 42,
    "SQUEEZE": 43, "UNIDIRECTIONAL_SEQUENCE_LSTM": 44, "STRIDED_SLICE": 45, "EXP": 47,
    "SPLIT": 49, "CAST": 53, "PRELU": 54, "MAXIMUM": 55, "ARG_MAX": 56, "MINIMUM": 57,
    "LESS": 58, "NEG": 59, "PADV2": 60, "GREATER": 61, "GREATER_EQUAL": 62, "LESS_EQUAL": 63,
    "SELECT": 64, "SLICE": 65, "TRANSPOSE_CONV": 67, "TILE": 69, "EXPAND_DIMS": 70,
    "EQUAL": 71, "NOT_EQUAL": 72, "LOG": 73, "SUM": 74, "RSQRT": 76, "REDUCE_MAX": 82,
    "PACK": 83, "LOGICAL_OR": 84, "LOGICAL_AND": 86, "LOGICAL_NOT": 87, "UNPACK": 88,
    "REDUCE_MIN": 89, "REDUCE_ANY": 91, "RESIZE_NEAREST_NEIGHBOR": 97, "LEAKY_RELU": 98,
    "SQUARED_DIFFERENCE": 99, "MIRROR_PAD": 100, "ABS": 101, "SPLIT_V": 102,
    "REVERSE_V2": 105, "ELU": 111, "QUANTIZE": 114, "HARD_SWISH": 117, "SCATTER_ND": 122,
    "SELECT_V2": 123, "BATCH_MATMUL": 126, "REDUCE_ALL": 140, "GELU": 150, "RELU_0_TO_1": 152,
}

#: `TensorType`, and the NumPy type (little-endian) of a tensor's bytes.
TENSOR_TYPES: dict[str, tuple[int, str]] = {
    "float32": (0, "<f4"), "int32": (2, "<i4"), "uint8": (3, "u1"), "int64": (4, "<i8"),
    "bool": (6, "?"), "int16": (7, "<i2"), "int8": (9, "i1"),
}

#: `ActivationFunctionType`.
ACTIVATIONS: dict[str, int] = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "TANH": 4}

#: `Padding`.
PADDINGS: dict[str, int] = {"SAME": 0, "VALID": 1}


class Option(NamedTuple):
    """One field of a builtin-options table."""

    slot: int
    kind: str  # int8, int32, bool, float32, int32s (vector)
    default: float = 0


class OptionsTable(NamedTuple):
    """A member of the `BuiltinOptions` union."""

    type_id: int
    fields: dict[str, Option]


_WINDOW = {
    "padding": Option(0, "int8"),
    "stride_w": Option(1, "int32"),
    "stride_h": Option(2, "int32"),
}
_REDUCER = OptionsTable(27, {"keep_dims": Option(0, "bool")})
_EMPTY_MAXMIN = OptionsTable(39, {})
_POOL = OptionsTable(5, _WINDOW | {
    "filter_width": Option(3, "int32"),
    "filter_height": Option(4, "int32"),
    "activation": Option(5, "int8"),
})

#: The options table of each operator; an operator that is absent has none.
OPTIONS: dict[str, OptionsTable] = {
    "CONV_2D": OptionsTable(1, _WINDOW | {
        "activation": Option(3, "int8"),
        "dilation_w": Option(4, "int32", 1),
        "dilation_h": Option(5, "int32", 1),
    }),
    "DEPTHWISE_CONV_2D": OptionsTable(2, _WINDOW | {
        "depth_multiplier": Option(3, "int32"),
        "activation": Option(4, "int8"),
        "dilation_w": Option(5, "int32", 1),
        "dilation_h": Option(6, "int32", 1),
    }),
    "AVERAGE_POOL_2D": _POOL,
    "MAX_POOL_2D": _POOL,
    "FULLY_CONNECTED": OptionsTable(8, {
        "activation": Option(0, "int8"),
        "keep_num_dims": Option(2, "bool"),
    }),
    "SOFTMAX": OptionsTable(9, {"beta": Option(0, "float32")}),
    "CONCATENATION": OptionsTable(10, {
        "axis": Option(0, "int32"),
        "activation": Option(1, "int8"),
    }),
    "ADD": OptionsTable(11, {
        "activation": Option(0, "int8"),
        "pot_scale_int16": Option(1, "bool", 1),
    }),
    "RESIZE_BILINEAR": OptionsTable(15, {
        "align_corners": Option(2, "bool"),
        "half_pixel_centers": Option(3, "bool"),
    }),
    "RESHAPE": OptionsTable(17, {"new_shape": Option(0, "int32s")}),
    "MUL": OptionsTable(21, {"activation": Option(0, "int8")}),
    "PAD": OptionsTable(22, {}),
    "GATHER": OptionsTable(23, {
        "axis": Option(0, "int32"),
        "batch_dims": Option(1, "int32"),
    }),
    "TRANSPOSE": OptionsTable(26, {}),
    "MEAN": _REDUCER,
    "SUM": _REDUCER,
    "REDUCE_MAX": _REDUCER,
    "REDUCE_MIN": _REDUCER,
    "REDUCE_ANY": _REDUCER,
    "REDUCE_ALL": _REDUCER,
    "SUB": OptionsTable(28, {
        "activation": Option(0, "int8"),
        "pot_scale_int16": Option(1, "bool", 1),
    }),
    "DIV": OptionsTable(29, {"activation": Option(0, "int8")}),
    "SQUEEZE": OptionsTable(30, {"squeeze_dims": Option(0, "int32s")}),
    "STRIDED_SLICE": OptionsTable(32, {
        "begin_mask": Option(0, "int32"),
        "end_mask": Option(1, "int32"),
        "ellipsis_mask": Option(2, "int32"),
        "new_axis_mask": Option(3, "int32"),
        "shrink_axis_mask": Option(4, "int32"),
        "offset": Option(5, "bool"),
    }),
    "EXP": OptionsTable(33, {}),
    "SPLIT": OptionsTable(35, {"num_splits": Option(0, "int32")}),
    "CAST": OptionsTable(37, {
        "in_data_type": Option(0, "int8"),
        "out_data_type": Option(1, "int8"),
    }),
    "MAXIMUM": _EMPTY_MAXMIN,
    "MINIMUM": _EMPTY_MAXMIN,
    "ARG_MAX": OptionsTable(40, {"output_type": Option(0, "int8")}),
    "LESS": OptionsTable(41, {}),
    "NEG": OptionsTable(42, {}),
    "PADV2": OptionsTable(43, {}),
    "GREATER": OptionsTable(44, {}),
    "GREATER_EQUAL": OptionsTable(45, {}),
    "LESS_EQUAL": OptionsTable(46, {}),
    "SELECT": OptionsTable(47, {}),
    "SLICE": OptionsTable(48, {}),
    "TRANSPOSE_CONV": OptionsTable(49, _WINDOW | {"activation": Option(3, "int8")}),
    "TILE": OptionsTable(51, {}),
    "EXPAND_DIMS": OptionsTable(52, {}),
    "EQUAL": OptionsTable(53, {}),
    "NOT_EQUAL": OptionsTable(54, {}),
    "PACK": OptionsTable(59, {
        "values_count": Option(0, "int32"),
        "axis": Option(1, "int32"),
    }),
    "LOGICAL_OR": OptionsTable(60, {}),
    "LOGICAL_AND": OptionsTable(62, {}),
    "LOGICAL_NOT": OptionsTable(63, {}),
    "UNPACK": OptionsTable(64, {"num": Option(0, "int32"), "axis": Option(1, "int32")}),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": OptionsTable(71, {
        "activation": Option(0, "int8"),
        "cell_clip": Option(1, "float32"),
        "proj_clip": Option(2, "float32"),
        "time_major": Option(3, "bool"),
    }),
    "RESIZE_NEAREST_NEIGHBOR": OptionsTable(74, {
        "align_corners": Option(0, "bool"),
        "half_pixel_centers": Option(1, "bool"),
    }),
    "LEAKY_RELU": OptionsTable(75, {"alpha": Option(0, "float32")}),
    "SQUARED_DIFFERENCE": OptionsTable(76, {}),
    "MIRROR_PAD": OptionsTable(77, {"mode": Option(0, "int8")}),
    "ABS": OptionsTable(78, {}),
    "SPLIT_V": OptionsTable(79, {"num_splits": Option(0, "int32")}),
    "REVERSE_V2": OptionsTable(81, {}),
    "QUANTIZE": OptionsTable(89, {}),
    "HARD_SWISH": OptionsTable(91, {}),
    "SCATTER_ND": OptionsTable(97, {}),
    "SELECT_V2": OptionsTable(98, {}),
    "BATCH_MATMUL": OptionsTable(101, {
        "adj_x": Option(0, "bool"),
        "adj_y": Option(1, "bool"),
    }),
    "GELU": OptionsTable(116, {"approximate": Option(0, "bool")}),
}

#: Operator versions by operator and dtype where a plain 1 would be wrong for the reader.
#: Source: the operator version tables of the TFLite converter (int8 and int16 variants).
VERSIONS: dict[str, dict[str, int]] = {
    "CONV_2D": {"int8": 3, "int16": 4},
    "DEPTHWISE_CONV_2D": {"int8": 3, "int16": 5},
    "FULLY_CONNECTED": {"int8": 4, "int16": 7},
    "AVERAGE_POOL_2D": {"int8": 2, "int16": 3},
    "MAX_POOL_2D": {"int8": 2, "int16": 3},
    "SOFTMAX": {"int8": 2, "int16": 3},
    "ADD": {"int8": 2, "int16": 3},
    "MUL": {"int8": 2, "int16": 4},
}

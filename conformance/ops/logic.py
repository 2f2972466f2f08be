"""Operators that only Ethos-U85 takes: comparisons, logic, selection, gathering and scattering, CAST and DIV."""

from __future__ import annotations

import numpy as np

from .. import schema
from ..draw import Draw
from ..net import Net, Tensor, require
from ..registry import Params, register
from ..tflite_writer import Quant
from .binary import check_broadcast, draw_other, make_other, operands
from .common import any_input, draw_any_shape, draw_map_shape, draw_quant, map_input
from .reduction import draw_reduction, reduced_shape

#: Quantisation of a truth value: Vela's readers expect some.
TRUTH = Quant(1.0)

COMPARISONS = {"EQUAL": np.equal, "NOT_EQUAL": np.not_equal, "GREATER": np.greater,
               "GREATER_EQUAL": np.greater_equal, "LESS": np.less, "LESS_EQUAL": np.less_equal}
LOGICAL = {"LOGICAL_AND": np.logical_and, "LOGICAL_OR": np.logical_or}


def truth_input(draw: Draw, dtype: str) -> Params:
    return {"shape": draw_any_shape(draw), "scale": 1.0, "zero_point": 0}


def draw_comparison(draw: Draw, x: Tensor, product: str) -> Params:
    return {"seed": draw.seed(), "other": draw_other(draw, x), "same_quant": draw.chance(0.8)}


def _apply_comparison(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        y = make_other(net, x, p)
        check_broadcast(x, y)
        sample = COMPARISONS[opcode](x.sample * x.scale, y.sample * y.scale).astype(np.int64)
        z = net.tensor(opcode.lower(), sample.shape, "bool", TRUTH, sample)
        net.operator(opcode, operands(x, y, p), [z])
        return [z]

    return apply


def draw_logical(draw: Draw, x: Tensor, product: str) -> Params:
    return {"seed": draw.seed(), "other": draw_other(draw, x), "same_quant": True}


def _apply_logical(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        y = make_other(net, x, p)
        check_broadcast(x, y)
        sample = LOGICAL[opcode](x.sample, y.sample).astype(np.int64)
        z = net.tensor(opcode.lower(), sample.shape, "bool", TRUTH, sample)
        net.operator(opcode, operands(x, y, p), [z])
        return [z]

    return apply


def draw_nothing(draw: Draw, x: Tensor, product: str) -> Params:
    return {}


def apply_not(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    z = net.tensor("not", x.shape, "bool", TRUTH, 1 - x.sample)
    net.operator("LOGICAL_NOT", [x.index], [z])
    return [z]


def _apply_truth_reduction(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        shape = reduced_shape(x.shape, p["axes"], p["keep_dims"])
        reduce = np.any if opcode == "REDUCE_ANY" else np.all
        sample = reduce(x.sample, axis=tuple(p["axes"])).astype(np.int64).reshape(shape)
        z = net.tensor("reduced", shape, "bool", TRUTH, sample)
        net.operator(opcode, [x.index, net.parameter("axes", p["axes"])], [z], {"keep_dims": p["keep_dims"]})
        return [z]

    return apply


def draw_select(draw: Draw, x: Tensor, product: str) -> Params:
    return {"seed": draw.seed(), "other": draw.choice(["input", "constant"])}


def _apply_select(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        condition = net.input(x.shape, "bool", 1.0, 0)
        if p["other"] == "input":
            y = net.input(x.shape, x.dtype, x.scale, x.quant.zero_point)
        else:
            y = net.constant_map(x.shape, x.dtype, x.scale, x.quant.zero_point, Draw(p["seed"]))
        z = net.tensor("selected", x.shape, x.dtype, x.quant, np.where(condition.sample == 1, x.sample, y.sample))
        net.operator(opcode, [condition.index, x.index, y.index], [z])
        return [z]

    return apply


def gather_input(draw: Draw, dtype: str) -> Params:
    shape = draw_map_shape(draw, most=12)
    return {"shape": shape[1:] if draw.chance(0.5) else shape[2:], **draw_quant(draw, dtype)}


def draw_gather(draw: Draw, x: Tensor, product: str) -> Params:
    # Vela takes an axis that equals the number of batch dimensions.
    axis = draw.integer(0, 1) if len(x.shape) > 2 else 0
    return {"seed": draw.seed(), "axis": axis, "count": draw.integer(1, 10), "constant": draw.chance(0.4)}


def apply_gather(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    axis = p["axis"]
    require(axis < len(x.shape), "axis")
    shape = (*x.shape[:axis], p["count"])
    if p["constant"]:
        indices = net.constant("indices", Draw(p["seed"]).integers(0, x.shape[axis] - 1, shape), "int32")
    else:
        indices = net.input(shape, "int32", 1.0, 0, codes=(0, x.shape[axis] - 1)).index
    z = net.tensor("gathered", (*x.shape[:axis], p["count"], *x.shape[axis + 1:]), x.dtype, x.quant)
    net.operator("GATHER", [x.index, indices], [z], {"axis": axis, "batch_dims": axis})
    return [z]


def scatter_input(draw: Draw, dtype: str) -> Params:
    """The updates, [N, C]."""
    return {"shape": [draw.integer(1, 8), draw_map_shape(draw)[3]], **draw_quant(draw, dtype), "zero_point": 0}


def draw_scatter(draw: Draw, x: Tensor, product: str) -> Params:
    return {"seed": draw.seed(), "room": draw.integer(0, 8)}


def apply_scatter(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(len(x.shape) == 2, "rank")
    rows = x.shape[0] + p["room"]
    chosen = sorted(Draw(p["seed"]).shuffled(range(rows))[:x.shape[0]])
    z = net.tensor("scattered", (rows, x.shape[1]), x.dtype, x.quant)
    net.operator("SCATTER_ND", [net.parameter("indices", [[i] for i in chosen]), x.index,
                                net.parameter("shape", [rows, x.shape[1]])], [z])
    return [z]


#: CAST's output dtypes by its input dtype, none of which an input's codes can overflow.
CASTS = {"int8": ("int16", "int32"), "uint8": ("int16", "int32"), "int16": ("int32",), "int32": ("int16",),
         "bool": ("int32",)}


def draw_cast(draw: Draw, x: Tensor, product: str) -> Params:
    return {"output": draw.choice(CASTS[x.dtype])}


def cast_input(draw: Draw, dtype: str) -> Params:
    return {**any_input(draw, dtype), "scale": 1.0, "zero_point": 0}


def apply_cast(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    z = net.tensor("cast", x.shape, p["output"], Quant(1.0))
    net.operator("CAST", [x.index], [z], {"in_data_type": schema.TENSOR_TYPES[x.dtype][0],
                                          "out_data_type": schema.TENSOR_TYPES[p["output"]][0]})
    return [z]


def draw_div(draw: Draw, x: Tensor, product: str) -> Params:
    return {"seed": draw.seed(), "other": "input" if draw.chance(0.5) else "constant"}


def apply_div(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    """The divisor is at least 1: the references stop at 0."""
    if p["other"] == "input":
        y = net.input(x.shape, "int32", 1.0, 0, codes=(1, 200)).index
    else:
        y = net.constant("divisor", Draw(p["seed"]).integers(1, 200, x.shape), "int32", Quant(1.0))
    z = net.tensor("quotient", x.shape, "int32", Quant(1.0))
    net.operator("DIV", [x.index, y], [z], {"activation": "NONE"})
    return [z]


for _opcode in COMPARISONS:
    register(_opcode, any_input, draw_comparison, _apply_comparison(_opcode), (), ("int8", "int16", "int32"))
for _opcode in LOGICAL:
    register(_opcode, truth_input, draw_logical, _apply_logical(_opcode), (), ("bool",))
register("LOGICAL_NOT", truth_input, draw_nothing, apply_not, (), ("bool",))
for _opcode in ("REDUCE_ANY", "REDUCE_ALL"):
    register(_opcode, map_input, draw_reduction, _apply_truth_reduction(_opcode), (), ("bool",))
for _opcode in ("SELECT", "SELECT_V2"):
    register(_opcode, any_input, draw_select, _apply_select(_opcode), (), ("int8", "int16", "int32"))
register("GATHER", gather_input, draw_gather, apply_gather, (), ("int8", "int16", "int32"))
register("SCATTER_ND", scatter_input, draw_scatter, apply_scatter, (), ("int8", "int32"))
register("CAST", cast_input, draw_cast, apply_cast, (), ("int8", "uint8", "int16", "int32", "bool"))
register("DIV", cast_input, draw_div, apply_div, (), ("int32",))

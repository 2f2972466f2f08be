"""Element-wise operators of two operands: inputs, constants or scalars, with broadcasting."""

from __future__ import annotations

import math

import numpy as np

from ..draw import Draw, float32
from ..net import Net, Tensor, output_quant, require, settle
from ..registry import Params, register
from ..tflite_writer import Quant
from .common import FUSED, activation_side, any_input, draw_gain, draw_quant, draw_zero_point

#: Output scale, in octaves of the input's, at which the rounding of a sum's scaled operands shows. The operands
#: carry 20 more bits (15 from int16), and the references take no output multiplier of 1 or more.
CANCEL_OCTAVES = {"int8": (-18, -16), "uint8": (-18, -16), "int16": (-13, -11)}

#: Octaves by which an int32 product's output scale lies below 1. The references multiply codes and ignore scales;
#: Vela 5.2.0 shifts right by 30 less this. So 30 gives the references' product, and 0 shows the difference.
INT32_PRODUCT_OCTAVES = (0, 30)


def draw_other(draw: Draw, x: Tensor) -> Params:
    """The second operand: where it comes from, its shape, and whether it goes first."""
    kind = draw.weighted({"input": 5, "constant": 2, "scalar": 1.5})
    shape = list(x.shape)
    if kind == "scalar":
        shape = [1] * draw.integer(0 if draw.chance(0.3) else 1, len(shape))
    elif draw.chance(0.4):
        shape = [1 if draw.chance(0.5) else n for n in shape]
        while len(shape) > 1 and shape[0] == 1 and draw.chance(0.2):
            shape = shape[1:]
    return {"kind": kind, "shape": shape, **draw_quant(draw, x.dtype), "first": draw.chance(0.3)}


def make_other(net: Net, x: Tensor, p: Params) -> Tensor:
    """Adds the second operand. A shape that shrank apart from the first operand's is fitted to it."""
    other = p["other"]
    if other["kind"] == "skip":
        require(1 <= other["back"] < len(net.history), "nothing to skip from")
        return net.history[-1 - other["back"]]
    shape = [1 if n == 1 else m for n, m in zip(other["shape"], x.shape[len(x.shape) - len(other["shape"]):])]
    scale, zero_point = other["scale"], other["zero_point"]
    if p.get("same_quant") or x.dtype == "int32":
        scale, zero_point = x.scale, x.quant.zero_point
    if other["kind"] == "input":
        return net.input(shape, x.dtype, scale, zero_point)
    return net.constant_map(shape, x.dtype, scale, zero_point, Draw(p["seed"]))


def draw_arithmetic(draw: Draw, x: Tensor, product: str) -> Params:
    if x.dtype == "int32":
        return {"seed": draw.seed(), "other": draw_other(draw, x), "activation": "NONE",
                "octave": draw.choice(INT32_PRODUCT_OCTAVES)}
    activation = draw.weighted(FUSED)
    return {"seed": draw.seed(), "other": draw_other(draw, x), "activation": activation,
            "gain": draw_gain(draw, x.dtype),
            "zero_point": draw_zero_point(draw, x.dtype, activation_side(activation))}


def draw_sum(draw: Draw, x: Tensor, product: str) -> Params:
    p = draw_arithmetic(draw, x, product)
    if x.dtype != "int32":
        octaves = p["other"]["scale"] / x.scale
        if not 2.0**-14 < octaves < 2.0**14:  # nothing of the smaller operand would be left
            p["other"]["scale"] = float32(x.scale * draw.magnitude(-3, 2))
        p["equal_scales"] = draw.chance(0.15)
        if draw.chance(0.2):
            p["cancel"] = {"octave": draw.integer(*CANCEL_OCTAVES[x.dtype]), "skew": draw.integer(-40, 40)}
    return p


def _cancelling(net: Net, x: Tensor, p: Params, subtract: bool) -> tuple[Tensor, Quant]:
    """An operand that nearly cancels x in every element, and an output scale fine enough to see what is left.

    It is x again, requantised to a scale that differs in the last bits; to be added, it is multiplied by -1 first.
    """
    y = x
    skewed = float32(x.scale * (1 + p["cancel"]["skew"] * 2.0**-22))
    if subtract:
        y = net.tensor("twin", x.shape, x.dtype, Quant(skewed, x.quant.zero_point), x.sample)
        net.operator("QUANTIZE", [x.index], [y])
    else:
        minus = net.constant("minus_one", [-1 if x.dtype != "uint8" else 0], x.dtype,
                             Quant(1.0, 1 if x.dtype == "uint8" else 0))
        low, high = (0, 255) if x.dtype == "uint8" else (-128, 127) if x.dtype == "int8" else (0, 0)
        y = net.tensor("minus", x.shape, x.dtype, Quant(skewed, low + high - x.quant.zero_point), -x.sample)
        net.operator("MUL", [x.index, minus], [y], {"activation": "NONE"})
    return y, Quant(float32(max(x.scale, skewed) * 2.0 ** p["cancel"]["octave"]), p["zero_point"])


def _apply_sum(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        sign = -1 if opcode == "SUB" else 1
        if p.get("cancel"):
            y, quant = _cancelling(net, x, p, opcode == "SUB")
            real = np.zeros(x.shape)
        else:
            if p.get("equal_scales"):
                p = {**p, "other": {**p["other"], "scale": x.scale}}
            y = make_other(net, x, p)
            check_broadcast(x, y)
            a, b = (y, x) if p["other"]["first"] else (x, y)
            real = a.sample * a.scale + sign * b.sample * b.scale
            quant = x.quant if x.dtype == "int32" else output_quant(p["gain"], spread(real), p["zero_point"])
        z = net.tensor(opcode.lower(), real.shape, x.dtype, quant, settle(real, quant, x.dtype, p["activation"]))
        # Without the option a reader assumes int16 scales that are powers of two.
        net.operator(opcode, operands(x, y, p), [z], {"activation": p["activation"], "pot_scale_int16": False})
        return [z]

    return apply


def spread(real: np.ndarray) -> float:
    """Root mean square of real numbers."""
    return math.sqrt(math.fsum((real * real).ravel()) / real.size)


def check_broadcast(x: Tensor, y: Tensor) -> None:
    """Raises `Invalid` unless the shapes fit."""
    require(len(y.shape) <= len(x.shape), "rank")
    padded = (1,) * (len(x.shape) - len(y.shape)) + y.shape
    require(all(a == b or 1 in (a, b) for a, b in zip(x.shape, padded)), "shapes do not broadcast")


def operands(x: Tensor, y: Tensor, p: Params) -> list[int]:
    """Indices of the operands in the drawn order."""
    return [y.index, x.index] if p["other"]["first"] else [x.index, y.index]


def _apply_product(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        y = make_other(net, x, p)
        check_broadcast(x, y)
        real = (x.sample * x.scale) * (y.sample * y.scale)
        if opcode == "SQUARED_DIFFERENCE":
            real = (x.sample * x.scale - y.sample * y.scale) ** 2
        if x.dtype == "int32":
            quant = Quant(2.0 ** -p["octave"])
        else:
            quant = output_quant(p["gain"], spread(real), p["zero_point"])
        activation = p["activation"] if opcode == "MUL" else "NONE"
        z = net.tensor(opcode.lower(), real.shape, x.dtype, quant, settle(real, quant, x.dtype, activation))
        net.operator(opcode, operands(x, y, p), [z], {"activation": activation} if opcode == "MUL" else {})
        return [z]

    return apply


def draw_extremum(draw: Draw, x: Tensor, product: str) -> Params:
    return {"seed": draw.seed(), "other": draw_other(draw, x), "same_quant": True}


def _apply_extremum(opcode: str):
    def apply(net: Net, x: Tensor, p: Params) -> list[Tensor]:
        y = make_other(net, x, p)
        check_broadcast(x, y)
        sample = (np.maximum if opcode == "MAXIMUM" else np.minimum)(x.sample, y.sample)
        z = net.tensor(opcode.lower(), sample.shape, x.dtype, x.quant, sample)
        net.operator(opcode, operands(x, y, p), [z])
        return [z]

    return apply


_DTYPES = ("int8", "uint8", "int16")
for _opcode in ("ADD", "SUB"):
    register(_opcode, any_input, draw_sum, _apply_sum(_opcode), (*_DTYPES, "int32"))
register("MUL", any_input, draw_arithmetic, _apply_product("MUL"), (*_DTYPES, "int32"))
register("SQUARED_DIFFERENCE", any_input, draw_arithmetic, _apply_product("SQUARED_DIFFERENCE"), ("int8",))
for _opcode in ("MAXIMUM", "MINIMUM"):
    register(_opcode, any_input, draw_extremum, _apply_extremum(_opcode), _DTYPES, ("int32",))

"""UNIDIRECTIONAL_SEQUENCE_LSTM with int8 activations, int16 cell state and no optional parts."""

from __future__ import annotations

import numpy as np

from ..draw import Draw, float32
from ..net import Net, Tensor, deviation, require
from ..registry import Params, register
from ..tflite_writer import ABSENT, Quant
from .common import draw_zero_point
from .convolution import draw_weights

#: The gates, in the order of the operator's inputs.
GATES = ("input", "forget", "cell", "output")

#: Scale of a gate before its activation: 3 integer bits in int16 (TFLite's LSTM kernels).
GATE_SCALE = 2.0**-12


def lstm_input(draw: Draw, dtype: str) -> Params:
    shape = [draw.integer(1, 3), draw.integer(1, 6), draw.choice((1, 3, 8, 15, 16, 20, 33))]
    scale = draw.magnitude(-7, -5) if dtype != "int16" else draw.magnitude(-15, -13)
    return {"shape": shape, "scale": scale, "zero_point": draw_zero_point(draw, dtype)}


def draw_lstm(draw: Draw, x: Tensor, product: str) -> Params:
    return {
        "seed": draw.seed(),
        "units": draw.choice((1, 4, 7, 16, 17, 24)),
        "time_major": draw.chance(0.3),
        "reach": draw.magnitude(-1, 1),  # deviation of a gate's real input
        "cell_bits": draw.integer(-14, -11),
        "cell_clip": draw.weighted({0.0: 3, 4.0: 1}),
        "zero_point": draw_zero_point(draw, x.dtype),
    }


def apply_lstm(net: Net, x: Tensor, p: Params) -> list[Tensor]:
    require(len(x.shape) == 3, "rank")
    draw, units = Draw(p["seed"]), p["units"]
    batch = x.shape[1] if p["time_major"] else x.shape[0]
    depth = x.shape[2]
    require(batch > 1 or units > 1, "one unit and one batch: Vela 5.2.0 dies by SIGSEGV")
    # The hidden state is a sigmoid times a tanh: within -1..1.
    hidden = Quant(2.0**-7 if x.dtype == "int8" else 2.0**-15, p["zero_point"])
    bias_dtype = "int32" if x.dtype == "int8" else "int64"

    def matrix(columns: int, scale: float, power: float) -> int:
        weights = draw_weights(draw, "bell", (units, columns))
        real = power * scale * np.sqrt(columns) * 36  # the bell's deviation is about 36
        return net.constant("weights", weights, "int8", Quant(float32(p["reach"] / real)))

    from_input = [matrix(depth, x.scale, x.power) for _ in GATES]
    from_state = [matrix(units, hidden.scales[0], deviation(x.dtype)) for _ in GATES]
    biases = []
    for weights in from_input:
        scale = float32(net.writer.quant(weights).scales[0] * x.scale)
        limit = min(int(2 / scale), 1 << 30)
        biases.append(net.constant("bias", draw.integers(-limit, limit, (units,)), bias_dtype, Quant(scale)))
    state = net.tensor("output_state", (batch, units), x.dtype, hidden, variable=True)
    cell = net.tensor("cell_state", (batch, units), "int16", Quant(2.0 ** p["cell_bits"]), variable=True)
    # The intermediates carry quantisation only; TFLM wants them empty.
    gates = [net.writer.tensor(net.name(f"{gate}_gate"), (0,), "int16", Quant(GATE_SCALE)) for gate in GATES]
    gates.append(net.writer.tensor(net.name("hidden"), (0,), x.dtype, hidden))
    y = net.tensor("lstm", (*x.shape[:2], units), x.dtype, hidden)
    net.operator(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [x.index, *from_input, *from_state, *[ABSENT] * 3, *biases, ABSENT, ABSENT, state.index, cell.index,
         *[ABSENT] * 4],
        [y], {"activation": "TANH", "cell_clip": p["cell_clip"], "proj_clip": 0.0, "time_major": p["time_major"]},
        intermediates=gates,
    )
    return [y]


register("UNIDIRECTIONAL_SEQUENCE_LSTM", lstm_input, draw_lstm, apply_lstm, ("int8", "int16"))

"""Post-training quantisation of a `tinycnn` network to TFLite's int8 or int16x8 conventions.

Weights are int8, symmetric, one scale per output channel. Activations are int8 with a zero point, or int16
symmetric; biases int32 and int64 with the scale input scale * weight scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from conformance import schema
from conformance.tflite_writer import ModelWriter, Quant

from .tinycnn import Layer, run

#: Code range of activations and dtype of biases, by activation dtype.
CODES = {"int8": (-128, 127), "int16": (-32768, 32767)}
BIAS_DTYPES = {"int8": "int32", "int16": "int64"}

#: TFLite fixes softmax's int8 output to these codes: 1/256 per step from -128.
SOFTMAX_QUANT = Quant(1.0 / 256, -128)


@dataclass
class QuantisedLayer:
    """A layer with its integer weights and the quantisation of its output."""

    layer: Layer
    quant: Quant
    weights: np.ndarray | None = None
    weight_scales: np.ndarray | None = None
    bias: np.ndarray | None = None


def as_float32(x: float) -> float:
    """The nearest float32: what the file stores."""
    return float(np.float32(x))


def activation_quant(low: float, high: float, dtype: str) -> Quant:
    """Smallest scale that covers the range and represents 0 exactly."""
    if dtype == "int16":
        return Quant(as_float32(max(-low, high) / 32767))
    low, high = min(low, 0.0), max(high, 0.0)
    scale = as_float32((high - low) / 255)
    return Quant(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)))


def quantise_layers(
    layers: Sequence[Layer], calibration: np.ndarray, input_quant: Quant, dtype: str
) -> list[QuantisedLayer]:
    """Chooses the quantisation of each layer from the activations of a calibration batch."""
    outputs = run(layers, calibration)
    result = []
    quant = input_quant
    for layer, output in zip(layers, outputs):
        if layer.weights is None:  # pools and reshapes keep their input's quantisation
            result.append(QuantisedLayer(layer, quant))
            continue
        scales = np.abs(layer.weights).reshape(-1, layer.channels).max(axis=0) / 127
        scales = np.maximum(scales, 1e-6).astype(np.float32).astype(np.float64)
        weights = np.clip(np.rint(layer.weights / scales), -127, 127)
        bias = np.rint(layer.bias / (quant.scales[0] * scales))
        out = activation_quant(float(output.min()), float(output.max()), dtype)
        result.append(QuantisedLayer(layer, out, weights, scales, bias))
        quant = out
    return result


def to_codes(x: np.ndarray, quant: Quant, dtype: str) -> np.ndarray:
    """Real values to integer codes."""
    low, high = CODES[dtype]
    return np.clip(np.rint(x / quant.scales[0]) + quant.zero_point, low, high).astype(dtype)


def run_integer(layers: Sequence[QuantisedLayer], codes: np.ndarray, input_quant: Quant, dtype: str) -> np.ndarray:
    """Last layer's codes. Multipliers aren't rounded to 31 bits here, so a code may differ by one from a kernel's."""
    low, high = CODES[dtype]
    x, quant = codes.astype(np.float64), input_quant
    for q in layers:
        layer = q.layer
        if layer.kind == "average_pool":  # the kernels average codes and round halves away from zero
            mean = layer.linear(x, None, 0) / np.prod(layer.kernel)
            x = np.copysign(np.floor(np.abs(mean) + 0.5), mean)
        elif layer.kind == "flatten":
            x = layer.linear(x, None, 0)
        else:
            total = layer.linear(x - quant.zero_point, q.weights, 0) + q.bias
            scaled = total * (quant.scales[0] * q.weight_scales / q.quant.scales[0])
            floor = q.quant.zero_point if layer.relu else low
            x = np.clip(np.floor(scaled + 0.5) + q.quant.zero_point, floor, high)
        quant = q.quant
    return x


def write_model(
    name: str, layers: Sequence[QuantisedLayer], input_shape: Sequence[int], input_quant: Quant, dtype: str,
    *, softmax: bool,
) -> bytes:
    """The .tflite file; `softmax` appends that operator (int8 only)."""
    model = ModelWriter(name)
    x = first = model.tensor("input", input_shape, dtype, input_quant)
    for index, q in enumerate(layers):
        x = _write_layer(model, f"{index}_{q.layer.kind}", x, q, dtype)
    if softmax:
        y = model.tensor("probabilities", model.shape(x), dtype, SOFTMAX_QUANT)
        model.operator("SOFTMAX", [x], [y], {"beta": 1.0}, version=schema.VERSIONS["SOFTMAX"][dtype])
        x = y
    return model.finish([first], [x])


def _write_layer(model: ModelWriter, name: str, x: int, q: QuantisedLayer, dtype: str) -> int:
    layer, shape = q.layer, model.shape(x)
    activation = schema.ACTIVATIONS["RELU" if layer.relu else "NONE"]
    if layer.kind == "flatten":
        flat = (1, int(np.prod(shape)))
        y = model.tensor(name, flat, dtype, q.quant)
        model.operator("RESHAPE", [x, model.constant(f"{name}/shape", np.array(flat))], [y], {"new_shape": flat})
        return y
    inputs = [x]
    if q.weights is not None:
        kernel = q.weights.T if layer.kind == "dense" else q.weights.transpose(3, 0, 1, 2)
        if layer.kind == "depthwise":  # TFLite keeps depthwise weights as [1, H, W, C]
            kernel = q.weights.transpose(2, 0, 1, 3)
        axis = 3 if layer.kind == "depthwise" else 0
        scales = tuple(float(s) for s in q.weight_scales)
        inputs.append(model.constant(f"{name}/weights", kernel, "int8", Quant(scales, axis=axis)))
        bias_scales = tuple(as_float32(model.quant(x).scales[0] * s) for s in scales)
        inputs.append(model.constant(f"{name}/bias", q.bias, BIAS_DTYPES[dtype], Quant(bias_scales)))
    if layer.kind == "dense":
        y = model.tensor(name, (1, layer.channels), dtype, q.quant)
        model.operator("FULLY_CONNECTED", inputs, [y], {"activation": activation},
                       version=schema.VERSIONS["FULLY_CONNECTED"][dtype])
        return y
    options = {"padding": schema.PADDINGS[layer.padding], "stride_h": layer.stride[0],
               "stride_w": layer.stride[1], "activation": activation}
    opcode = {"conv": "CONV_2D", "depthwise": "DEPTHWISE_CONV_2D", "average_pool": "AVERAGE_POOL_2D"}[layer.kind]
    if layer.kind == "average_pool":
        options |= {"filter_height": layer.kernel[0], "filter_width": layer.kernel[1]}
    elif layer.kind == "depthwise":
        options["depth_multiplier"] = 1
    y = model.tensor(name, (1, *layer.cache["y"].shape[1:]), dtype, q.quant)
    model.operator(opcode, inputs, [y], options, version=schema.VERSIONS[opcode][dtype])
    return y

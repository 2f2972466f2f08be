"""Cases: from (operator, dtype, seed) to parameters, from parameters to a model, and to simpler parameters.

A case's parameters are plain JSON values:

    {"op": "CONV_2D", "dtype": "int8", "input": {"shape": [1, 8, 8, 3], "scale": 0.02, "zero_point": 5},
     "layers": [{"op": "CONV_2D", "kernel": [3, 3], ...}]}

A chain has several layers, any other case one.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from . import chains
from .draw import Draw
from .net import Invalid, Net, Tensor, require
from .ops import *  # noqa: F403  (registers the operators)
from .registry import OPERATORS, Params

#: Attempts at drawing a chain's layer that fits before the chain ends early.
LAYER_ATTEMPTS = 20


def operators(product: str) -> list[tuple[str, str]]:
    """All (operator, dtype) pairs that Vela takes for a product, chains last."""
    pairs = [(name, dtype) for name, op in OPERATORS.items() for dtype in op.dtypes_for(product)]
    return pairs + [(kind, dtype) for kind in chains.CHAINS for dtype in chains.CHAIN_DTYPES]


def draw_case(op: str, dtype: str, seed: int, product: str = "u55") -> Params:
    """The parameters of a case. Equal arguments give equal parameters."""
    draw = Draw("case", op, dtype, seed)
    if op in chains.CHAINS:
        return _draw_chain(draw, op, dtype, product)
    spec = OPERATORS[op]
    for _ in range(LAYER_ATTEMPTS):
        first = spec.draw_input(draw, dtype)
        net = Net("")
        x = net.input(first["shape"], dtype, first["scale"], first["zero_point"])
        params = {"op": op, "dtype": dtype, "input": first, "layers": [{"op": op, **spec.draw_layer(draw, x, product)}]}
        try:
            build_case(params)
            return params
        except Invalid:
            continue
    raise RuntimeError(f"{op} {dtype} {seed}: no valid parameters in {LAYER_ATTEMPTS} draws")


def _draw_chain(draw: Draw, kind: str, dtype: str, product: str) -> Params:
    first = chains.chain_input(draw, kind, dtype)
    net, x = _start(first, dtype)
    layers: list[Params] = []
    wanted = draw.integer(3, 4 if kind == "BIG_WEIGHTS" else 6 if kind == "CHAIN_LARGE" else 9)
    for _ in range(wanted * LAYER_ATTEMPTS):
        if len(layers) == wanted:
            break
        layer = chains.draw_chain_layer(draw, net, x, kind, product)
        trial, y = _start(first, dtype)
        try:
            for done in [*layers, layer]:
                y = _apply(trial, y, done)[0]
        except Invalid:
            continue
        work = math.prod(y.shape) * math.prod(layer.get("kernel", [1])) * (x.shape[3] if "channels" in layer else 1)
        if math.prod(y.shape) > chains.ELEMENT_LIMIT[kind] or work > chains.MAC_LIMIT[kind]:
            continue
        net, x = trial, y
        layers.append(layer)
    if kind != "CHAIN_LARGE" and math.prod(x.shape) <= 4096 and _has_oracle(layers, dtype) and draw.chance(0.4):
        layers += chains.draw_tail(draw, x, product)
    return {"op": kind, "dtype": dtype, "input": first, "layers": layers}


def _has_oracle(layers: list[Params], dtype: str) -> bool:
    """Whether a chain that ends in FULLY_CONNECTED can equal a reference.

    LiteRT's rounds once, unlike the NPU; TFLM's rounds like it, but TFLM lacks all of uint8 and some of int16.
    """
    return dtype == "int8" or dtype == "int16" and all(layer["op"] != "RESIZE_BILINEAR" for layer in layers)


def _start(first: Params, dtype: str) -> tuple[Net, Tensor]:
    net = Net("npukit conformance case")
    x = net.input(first["shape"], dtype, first["scale"], first["zero_point"])
    net.history.append(x)
    return net, x


def _apply(net: Net, x: Tensor, layer: Params) -> list[Tensor]:
    outputs = OPERATORS[layer["op"]].apply(net, x, layer)
    net.history.append(outputs[0])
    return outputs


@dataclass(frozen=True)
class Case:
    """A built case: the .tflite, and the lowest and highest code to feed to each graph input."""

    model: bytes
    input_ranges: list[tuple[int, int]]


def build_case(params: Params) -> Case:
    """Builds a case. Raises `Invalid` when the parameters contradict each other."""
    net, x = _start(params["input"], params["dtype"])
    outputs = [x]
    require(bool(params["layers"]), "no layer")
    for layer in params["layers"]:
        outputs = _apply(net, outputs[0], layer)
    return Case(net.finish(outputs), net.input_ranges)


#: Simplest value of each parameter that is a name.
SIMPLEST = {"activation": "NONE", "padding": "VALID", "weights": "single", "bias": "int32", "kind": "input",
            "mode": "plain", "alpha_shape": "1"}

#: Parameters that shrinking leaves alone: taking them apart changes what the case is about.
FIXED = {"op", "dtype", "output", "index", "seed", "order", "axis", "axes", "back", "skew", "octave"}

#: Parameters whose numbers count from 1.
FROM_ONE = {"shape", "kernel", "stride", "dilation", "channels", "depth_multiplier", "size", "count", "units",
            "columns", "strides", "multiples", "sizes", "factor"}


def smaller(params: Params) -> Iterator[Params]:
    """Valid cases that are simpler than this one, the boldest cuts first.

    A test driver shrinks a failing case by moving to the first of them that still fails, until none does.
    Ends after finitely many steps: each candidate is nearer to its simplest values.
    """
    seen = {json.dumps(params, sort_keys=True)}
    for candidate in _candidates(params):
        text = json.dumps(candidate, sort_keys=True)
        if text in seen:
            continue
        seen.add(text)
        try:
            build_case(candidate)
        except (Invalid, ValueError, KeyError, IndexError):
            continue
        yield candidate


def _candidates(params: Params) -> Iterator[Params]:
    layers = params["layers"]
    if len(layers) > 1:
        for half in (layers[:len(layers) // 2], layers[len(layers) // 2:]):
            yield {**params, "layers": half}
        for i in range(len(layers)):
            yield {**params, "layers": layers[:i] + layers[i + 1:]}
    for path, value in list(_leaves(params)):
        for simpler in _simpler(path, value):
            candidate = copy.deepcopy(params)
            holder = candidate
            for step in path[:-1]:
                holder = holder[step]
            holder[path[-1]] = simpler
            yield candidate


def _leaves(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in FIXED:
                yield from _leaves(item, (*path, key))
    elif isinstance(value, list):
        if path[-1] in ("others", "sizes", "scales", "split") and len(value) > 1:
            yield path, value
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield path, value


def _simpler(path: tuple[object, ...], value: object) -> Iterator[object]:
    key = next(step for step in reversed(path) if isinstance(step, str))
    if isinstance(value, list):
        yield value[:1]
        yield value[:-1]
    elif isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int):
        low = 1 if key in FROM_ONE else 0
        if value != low:
            yield low
            if value > low + 2:
                yield (value + low) // 2
                yield value - 1
            elif value < low - 2:
                yield -((low - value) // 2)
    elif isinstance(value, str):
        if SIMPLEST.get(key, value) != value:
            yield SIMPLEST[key]
    elif isinstance(value, float) and value != 0.0:
        power = math.copysign(2.0 ** round(math.log2(abs(value))), value)
        if power != value:
            yield power

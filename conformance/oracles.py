"""The reference interpreters: TensorFlow Lite Micro, and LiteRT with its reference kernels."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

#: Tensor arena for TFLM; the largest chain needs a few MiB.
TFLM_ARENA = 64 << 20


def random_inputs(model: bytes, ranges: list[tuple[int, int]], seed: int) -> list[np.ndarray]:
    """Inputs drawn uniformly from the given ranges of codes."""
    rng = np.random.RandomState(seed)
    return [rng.randint(low, high + 1, shape, dtype=np.int64).astype(dtype)
            for (shape, dtype), (low, high) in zip(signature(model), ranges)]


def run_tflm(model: bytes, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Outputs of TensorFlow Lite Micro."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(model, arena_size=TFLM_ARENA)
    for index, value in enumerate(inputs):
        interpreter.set_input(value, index)
    interpreter.invoke()
    outputs = []
    while True:
        try:
            outputs.append(np.array(interpreter.get_output(len(outputs))))
        except (IndexError, RuntimeError, ValueError):
            return outputs


def signature(model: bytes) -> list[tuple[tuple[int, ...], np.dtype]]:
    """Shapes and dtypes of the graph inputs."""
    from ai_edge_litert import schema_py_generated as tflite

    names = {0: "f4", 2: "i4", 3: "u1", 4: "i8", 6: "?", 7: "i2", 9: "i1"}
    graph = tflite.Model.GetRootAs(model, 0).Subgraphs(0)
    tensors = [graph.Tensors(graph.Inputs(i)) for i in range(graph.InputsLength())]
    return [(tuple(t.Shape(i) for i in range(t.ShapeLength())), np.dtype(names[t.Type()])) for t in tensors]


def run_litert(model: bytes, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Outputs of LiteRT's reference kernels."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


ORACLES: dict[str, Callable[[bytes, list[np.ndarray]], list[np.ndarray]]] = {"tflm": run_tflm, "litert": run_litert}


def input_seed(name: str) -> int:
    """The seed of a case's inputs."""
    return zlib.crc32(name.encode())

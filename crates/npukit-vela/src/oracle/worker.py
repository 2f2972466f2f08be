"""Runs a network in one reference interpreter, on behalf of npukit.

A frame, in both directions, is a 32-bit length, a 64-bit length (both little-endian), that many bytes of JSON and that many
bytes of data. Requests come on standard input; answers go to what was standard output when the program began. Whatever
the interpreters print goes to standard error, which npukit keeps for its error messages.
"""
import json
import os
import struct
import sys
import time

requests = os.fdopen(os.dup(0), "rb")
answers = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)

import numpy as np  # noqa: E402 (nothing may be printed before standard output is moved)

HEADER = struct.Struct("<IQ")
# A network's activations rarely need more than this; beyond the last size the interpreter's word is final.
ARENA_BYTES = [1 << 20, 1 << 24, 1 << 27, 1 << 30]


class Refused(Exception):
    """The interpreter doesn't run this network."""


def receive():
    header = requests.read(HEADER.size)
    if len(header) < HEADER.size:
        sys.exit(0)
    json_bytes, body_bytes = HEADER.unpack(header)
    return json.loads(requests.read(json_bytes)), requests.read(body_bytes)


def answer(message, body=b""):
    # npukit reads standard error up to this mark before it looks at the answer.
    sys.stderr.flush()
    os.write(2, b"\x00\n")
    text = json.dumps(message).encode()
    answers.write(HEADER.pack(len(text), len(body)))
    answers.write(text)
    answers.write(body)
    answers.flush()


def describe(shape, dtype):
    return {"shape": [int(axis) for axis in shape], "dtype": np.dtype(dtype).name}


class LiteRt:
    def __init__(self, model, kernels, preserve):
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        resolver = {
            "reference": OpResolverType.BUILTIN_REF,
            "default": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            "xnnpack": OpResolverType.BUILTIN,
        }[kernels]
        try:
            self.interpreter = Interpreter(
                model_content=model,
                num_threads=1,
                experimental_op_resolver_type=resolver,
                experimental_preserve_all_tensors=preserve,
            )
            for entry in self.interpreter.get_input_details():
                signature = entry["shape_signature"]
                if (signature < 0).any():
                    self.interpreter.resize_tensor_input(entry["index"], np.where(signature < 0, 1, signature))
            self.interpreter.allocate_tensors()
        except (RuntimeError, ValueError) as error:
            raise Refused(str(error)) from error
        self.input_details = self.interpreter.get_input_details()
        self.output_details = self.interpreter.get_output_details()
        self.inputs = [describe(entry["shape"], entry["dtype"]) for entry in self.input_details]
        self.outputs = [describe(entry["shape"], entry["dtype"]) for entry in self.output_details]

    def set(self, arrays):
        for entry, array in zip(self.input_details, arrays):
            self.interpreter.set_tensor(entry["index"], array)

    def invoke(self):
        self.interpreter.invoke()

    def reset(self):
        self.interpreter.reset_all_variables()

    def result(self):
        return [self.interpreter.get_tensor(entry["index"]) for entry in self.output_details]

    def tensor(self, index):
        return self.interpreter.get_tensor(index)


class Tflm:
    def __init__(self, model, _kernels, preserve):
        from tflite_micro import runtime

        config = runtime.InterpreterConfig
        config = config.kPreserveAllTensors if preserve else config.kAllocationRecording
        sizes = [size for size in ARENA_BYTES if size > len(model)] or ARENA_BYTES[-1:]
        for size in sizes:
            try:
                self.interpreter = runtime.Interpreter.from_bytes(
                    model, arena_size=size, intrepreter_config=config
                )
                break
            except (RuntimeError, ValueError) as error:
                if size == sizes[-1]:
                    raise Refused(str(error)) from error
        from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

        graph = schema.Model.GetRootAsModel(model, 0).Subgraphs(0)
        detail = self.interpreter.get_input_details
        self.inputs = [describe(d["shape"], d["dtype"]) for d in map(detail, range(graph.InputsLength()))]
        detail = self.interpreter.get_output_details
        self.outputs = [describe(d["shape"], d["dtype"]) for d in map(detail, range(graph.OutputsLength()))]

    def set(self, arrays):
        for index, array in enumerate(arrays):
            self.interpreter.set_input(array, index)

    def invoke(self):
        self.interpreter.invoke()

    def reset(self):
        self.interpreter.reset()

    def result(self):
        return [self.interpreter.get_output(index) for index in range(len(self.outputs))]

    def tensor(self, index):
        return self.interpreter.GetTensor(index, 0)["tensor_data"]


def split(body, inputs):
    """One sample's arrays after another."""
    counts = [int(np.prod(entry["shape"], dtype=np.int64)) for entry in inputs]
    offset = 0
    while offset < len(body):
        arrays = []
        for entry, count in zip(inputs, counts):
            dtype = np.dtype(entry["dtype"])
            array = np.frombuffer(body, dtype, count, offset).reshape(entry["shape"])
            arrays.append(array)
            offset += array.nbytes
        yield arrays


def packed(arrays):
    arrays = [np.asarray(array) for array in arrays]
    return [describe(array.shape, array.dtype) for array in arrays], b"".join(map(np.ndarray.tobytes, arrays))


class Session:
    """A network in an interpreter, and how to start it afresh."""

    def __init__(self, request, model):
        kind = Tflm if request["runtime"] == "tflm" else LiteRt
        # The interpreters keep pointers into the file.
        self.make = lambda: kind(model, request["kernels"], request["preserve"])
        self.renewal = request["renewal"]
        self.interpreter = self.make()
        self.used = False

    def invoke(self, arrays):
        if self.used and self.renewal == "reset":
            self.interpreter.reset()
        elif self.used and self.renewal == "recreate":
            # Resource variables are initialised once in an interpreter's life.
            self.interpreter = self.make()
        self.used = True
        self.interpreter.set(arrays)
        self.interpreter.invoke()

    def samples(self, body):
        return split(body, self.interpreter.inputs)


def main():
    session = None
    while True:
        request, body = receive()
        try:
            what = request["request"]
            if what == "load":
                session = Session(request, body)
                answer({"inputs": session.interpreter.inputs, "outputs": session.interpreter.outputs})
            elif what == "run":
                results = []
                for arrays in session.samples(body):
                    session.invoke(arrays)
                    results.append(packed(session.interpreter.result()))
                answer({"outputs": [entry for entry, _ in results]}, b"".join(data for _, data in results))
            elif what == "tensors":
                (arrays,) = session.samples(body)
                session.invoke(arrays)
                described, data = packed(map(session.interpreter.tensor, request["tensors"]))
                answer({"tensors": described}, data)
            elif what == "bench":
                (arrays,) = session.samples(body)
                session.invoke(arrays)
                times = []
                for _ in range(request["iterations"]):
                    begin = time.perf_counter_ns()
                    session.interpreter.invoke()
                    times.append(time.perf_counter_ns() - begin)
                answer({"nanoseconds": times})
            else:
                answer({"failed": f"unknown request {what!r}"})
        except Refused as refusal:
            answer({"refused": str(refusal)})
        except Exception as error:  # noqa: BLE001 (every error is npukit's to report)
            answer({"failed": f"{type(error).__name__}: {error}"})


main()

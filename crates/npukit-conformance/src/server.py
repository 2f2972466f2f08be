"""The suite's Python side: compiles with Vela and asks the reference interpreters, each time in a forked process.

Importing Vela and the interpreters costs more than most cases do. This program imports them once and forks for every request, so
that each runs as in a process of its own: nothing is left behind by an earlier one, and a crash ends the fork alone.

    python server.py SOCKET REPOSITORY

A frame, in both directions, is a 32-bit length, a 64-bit length (both little-endian), that many bytes of JSON and that many
bytes of data. Each connection carries one request and its answer. The program ends when its standard input does.
"""
import itertools
import json
import os
import select
import socket
import struct
import sys

# Forked processes have the caller's thread alone, and a case needs no more than one.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "1"
sys.path.insert(0, sys.argv[2])

import numpy as np  # noqa: E402
from ai_edge_litert.interpreter import Interpreter, OpResolverType  # noqa: E402
from conformance import forked  # noqa: E402
from conformance.cases import build_case, draw_case, smaller  # noqa: E402
from ethosu.vela import vela  # noqa: E402

try:
    from tflite_micro import runtime as tflm
    from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema
except ImportError:  # built for 64-bit x86 Linux alone
    tflm = None

HEADER = struct.Struct("<IQ")
COMPILE_SECONDS, RUN_SECONDS, MAKE_SECONDS = 600.0, 300.0, 60.0
# Enough to find a simpler case that still fails among them.
SIMPLER_CASES = 200
# The largest chain needs a few MiB.
TFLM_ARENA = 64 << 20
RESOLVERS = {"litert-ref": OpResolverType.BUILTIN_REF,
             "litert-default": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}


def receive(connection):
    def exactly(count):
        data = bytearray()
        while len(data) < count:
            chunk = connection.recv(min(count - len(data), 1 << 20))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    json_bytes, body_bytes = HEADER.unpack(exactly(HEADER.size))
    return json.loads(exactly(json_bytes)), exactly(body_bytes)


def send(connection, message, body=b""):
    text = json.dumps(message).encode()
    connection.sendall(HEADER.pack(len(text), len(body)) + text + body)


def compile_model(arguments):
    try:
        code = vela.main(arguments)
    except SystemExit as done:
        code = done.code
    if code:
        raise RuntimeError(f"exit status {code}")


class LiteRt:
    def __init__(self, model, name):
        self.interpreter = Interpreter(model_content=model, num_threads=1, experimental_op_resolver_type=RESOLVERS[name])
        self.interpreter.allocate_tensors()
        self.inputs = [(d["shape"], d["dtype"]) for d in self.interpreter.get_input_details()]

    def run(self, arrays):
        for detail, array in zip(self.interpreter.get_input_details(), arrays):
            self.interpreter.set_tensor(detail["index"], array)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(d["index"]) for d in self.interpreter.get_output_details()]


class Tflm:
    def __init__(self, model, _name):
        if tflm is None:
            raise RuntimeError("not available on this system")
        self.interpreter = tflm.Interpreter.from_bytes(model, arena_size=TFLM_ARENA)
        graph = schema.Model.GetRootAsModel(model, 0).Subgraphs(0)
        details = map(self.interpreter.get_input_details, range(graph.InputsLength()))
        self.inputs = [(d["shape"], d["dtype"]) for d in details]
        self.outputs = graph.OutputsLength()

    def run(self, arrays):
        for index, array in enumerate(arrays):
            self.interpreter.set_input(array, index)
        self.interpreter.invoke()
        return [np.asarray(self.interpreter.get_output(index)) for index in range(self.outputs)]


def ask(name, model, samples):
    """Outputs for all samples, one interpreter for all of them: a network's states go on from one to the next."""
    interpreter = (Tflm if name == "tflm" else LiteRt)(model, name)
    offset, described, data = 0, [], []
    while offset < len(samples):
        arrays = []
        for shape, dtype in interpreter.inputs:
            count = int(np.prod(shape, dtype=np.int64))
            array = np.frombuffer(samples, dtype, count, offset).reshape(shape)
            arrays.append(array)
            offset += array.nbytes
        outputs = interpreter.run(arrays)
        described.append([{"shape": [int(axis) for axis in o.shape], "dtype": o.dtype.name} for o in outputs])
        data += [output.tobytes() for output in outputs]
    return described, b"".join(data)


def make(request):
    """A case as the generator's manifest has it, and its model."""
    product = request["product"]
    parameters = request.get("parameters") or draw_case(request["op"], request["dtype"], request["seed"], product)
    case = build_case(parameters)
    return {"parameters": parameters, "input_ranges": case.input_ranges}, case.model


def handle(connection, known):
    request, body = receive(connection)
    if "make" in request or "simpler" in request:
        simpler = request.get("simpler")
        outcome = forked.call(lambda: list(itertools.islice(smaller(simpler), SIMPLER_CASES)) if simpler
                              else make(request["make"]), MAKE_SECONDS)
        if outcome.failure is not None:
            send(connection, {"failure": outcome.failure})
        elif simpler:
            send(connection, {"simpler": outcome.value})
        else:
            send(connection, {"made": outcome.value[0]}, outcome.value[1])
        return
    if "vela" in request:
        arguments = request["vela"]
        outcome = known.get(tuple(arguments)) or forked.call(lambda: compile_model(arguments), COMPILE_SECONDS)
        send(connection, {"failure": outcome.failure, "printed": outcome.printed})
    else:
        size = request["model_bytes"]
        outcome = forked.call(lambda: ask(request["oracle"], body[:size], body[size:]), RUN_SECONDS)
        if outcome.failure is None:
            described, data = outcome.value
            send(connection, {"outputs": described}, data)
        else:
            lines = [line.strip() for line in outcome.printed.splitlines() if line.strip() and "INFO" not in line]
            send(connection, {"refused": "; ".join([*lines[:3], outcome.failure])[:400]})


def main():
    questions = (("--version",), ("--list-configs", "Arm/vela.ini"))
    known = {question: forked.call(lambda: compile_model(list(question)), COMPILE_SECONDS) for question in questions}
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(sys.argv[1])
    listener.listen(64)
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([0, listener], [], [], 1.0)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        if 0 in ready and not os.read(0, 1):
            return
        if listener in ready:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                try:
                    handle(connection, known)
                finally:
                    os._exit(0)
            connection.close()


main()

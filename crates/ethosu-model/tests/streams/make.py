"""Compiles the streams beside this file.

    python crates/ethosu-model/tests/streams/make.py [--npukit PROGRAM] [--vela PROGRAM]

Runs from the repository's root, needs the generator's packages (see conformance/README.md) and a built npukit. Models are single
operators of the conformance generator, drawn from a seed, and the networks in examples/. With Vela 5.2.0 it gives the same files.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]

# Operator, dtype, seed; accelerator. Small ones that between them have every command and most forms.
CASES = [
    ("CONV_2D:int8:21", "ethos-u55-32"),
    ("CONV_2D:int8:32", "ethos-u65-512"),
    ("CONV_2D:uint8:7", "ethos-u55-256"),
    ("CONV_2D:int16:22", "ethos-u65-256"),
    ("DEPTHWISE_CONV_2D:int8:36", "ethos-u55-128"),
    ("DEPTHWISE_CONV_2D:int16:2", "ethos-u65-512"),
    ("TRANSPOSE_CONV:int8:13", "ethos-u55-64"),
    ("FULLY_CONNECTED:int8:6", "ethos-u65-512"),
    ("MEAN:int8:17", "ethos-u55-256"),
    ("AVERAGE_POOL_2D:int8:13", "ethos-u55-128"),
    ("AVERAGE_POOL_2D:int16:4", "ethos-u55-128"),
    ("MAX_POOL_2D:uint8:6", "ethos-u65-256"),
    ("ADD:int8:29", "ethos-u55-128"),
    ("ADD:int16:24", "ethos-u55-128"),
    ("SUB:uint8:31", "ethos-u55-64"),
    ("MUL:int8:1", "ethos-u55-256"),
    ("MUL:int16:7", "ethos-u55-32"),
    ("MUL:int32:2", "ethos-u55-128"),
    ("MINIMUM:int8:12", "ethos-u65-256"),
    ("MAXIMUM:int16:5", "ethos-u55-128"),
    ("LEAKY_RELU:int8:12", "ethos-u55-128"),
    ("LEAKY_RELU:int16:31", "ethos-u55-128"),
    ("TANH:int16:37", "ethos-u55-256"),
    ("LOGISTIC:int16:13", "ethos-u65-512"),
    ("LOGISTIC:int8:21", "ethos-u55-128"),
    ("SOFTMAX:int8:14", "ethos-u55-128"),
    ("SOFTMAX:int16:17", "ethos-u65-256"),
    ("RESIZE_BILINEAR:int8:7", "ethos-u55-128"),
    ("RESIZE_NEAREST_NEIGHBOR:int8:12", "ethos-u65-512"),
    ("CONCATENATION:int8:34", "ethos-u55-64"),
    ("STRIDED_SLICE:int8:21", "ethos-u55-128"),
    ("ABS:int16:28", "ethos-u55-128"),
    ("ARG_MAX:int8:4", "ethos-u65-256"),
    ("ADD:int32:11", "ethos-u65-512"),
    ("CONV_2D:int8:32", "ethos-u85-256"),
    ("CONV_2D:int8:21", "ethos-u85-2048"),
    ("CONV_2D:int16:22", "ethos-u85-128"),
    ("DEPTHWISE_CONV_2D:int8:36", "ethos-u85-512"),
    ("TRANSPOSE_CONV:int8:13", "ethos-u85-256"),
    ("FULLY_CONNECTED:int8:6", "ethos-u85-256"),
    ("BATCH_MATMUL:int8:3", "ethos-u85-256"),
    ("AVERAGE_POOL_2D:int8:13", "ethos-u85-256"),
    ("MAX_POOL_2D:int16:4", "ethos-u85-256"),
    ("ADD:int8:29", "ethos-u85-256"),
    ("MUL:int16:7", "ethos-u85-128"),
    ("SOFTMAX:int8:14", "ethos-u85-256"),
    ("RESIZE_BILINEAR:int8:7", "ethos-u85-256"),
    ("TRANSPOSE:int8:3", "ethos-u85-256"),
    ("ARG_MAX:int8:4", "ethos-u85-256"),
    ("LOGISTIC:int8:21", "ethos-u85-1024"),
    ("TANH:int16:37", "ethos-u85-256"),
    ("SELECT_V2:int8:3", "ethos-u85-256"),
    ("CHAIN:int8:3", "ethos-u85-256"),
]

NETWORKS = [
    ("examples/digits/digits_int8.tflite", "ethos-u55-128"),
    ("examples/gesture/gesture_int16.tflite", "ethos-u65-512"),
    ("examples/digits/digits_int8.tflite", "ethos-u85-256"),
    ("examples/gesture/gesture_int16.tflite", "ethos-u85-512"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--npukit", default="npukit")
    parser.add_argument("--vela")
    args = parser.parse_args()
    vela = ["--vela", args.vela] if args.vela else []
    with tempfile.TemporaryDirectory() as folder:
        models = [(ROOT / path, accelerator) for path, accelerator in NETWORKS]
        for case, accelerator in CASES:
            product = accelerator.split("-")[1]
            (Path(folder) / product).mkdir(exist_ok=True)
            model = Path(folder) / product / (case.lower().replace(":", "_") + ".tflite")
            command = [sys.executable, "-m", "conformance.generate", "--product", product]
            command += ["--case", case, "--out", str(model)]
            subprocess.run(command, cwd=ROOT, check=True)
            models.append((model, accelerator))
        for model, accelerator in models:
            out = HERE / f"{model.stem}_{accelerator.removeprefix('ethos-').replace('-', '_')}.npub"
            command = [args.npukit, "build", str(model), "--accel", accelerator, "-o", str(out), *vela]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            print(out.name, out.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

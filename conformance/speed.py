"""Makes docs/speed.md: `npukit bench` on real networks and on one of MobileNetV2's size, for one accelerator of each product.

    cargo build --release -p npukit
    python -m conformance.speed --models DIR --out docs/speed.md [--npukit target/release/npukit] [--rounds N]

DIR holds MLPerf Tiny's kws_ref_model.tflite, vww_96_int8.tflite, pretrainedResnet_quant.tflite and ad01_int8.tflite.
Times are ratios: each is measured in turn with LiteRT's in one run, because a machine's absolute times say nothing about another's.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from . import mobilenet

ACCELERATORS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256")
MODELS = (("kws", "kws_ref_model"), ("vww", "vww_96_int8"), ("resnet8", "pretrainedResnet_quant"), ("ad01", "ad01_int8"))
KERNELS = ("litert-xnnpack", "litert-default", "litert-ref")
MIB = 1 << 20


def bench(npukit: str, model: Path, accelerator: str, rounds: int, *more: str) -> dict:
    """What `npukit bench --json` says."""
    command = [npukit, "bench", str(model), "--accel", accelerator, "--rounds", str(rounds), "--json", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def row(name: str, single: dict, batch: dict) -> tuple[str, str]:
    """A row of the table of times and one of the table of everything else."""
    ratios = {one["runtime"]: one["ratio"] for one in single["against"]}
    times = [f"{ratios[kernel]:.2f}" if ratios.get(kernel) else "-" for kernel in KERNELS]
    faster = f"{1 / ratios['litert-ref']:.0f}" if ratios.get("litert-ref") else "-"
    weights = single["constant_bytes"] / MIB
    planning = single["planning_ns"] / 1e6
    memory = (single["peak_memory_bytes"] or 0) / MIB
    cells = [name, single["accel"]]
    return ("| " + " | ".join([*cells, *times, faster]) + " |",
            "| " + " | ".join([*cells, f"{weights:.2f}", f"{planning:.1f}", f"{planning / weights:.0f}" if weights >= 1 else "-",
                               f"{batch['speedup']:.2f}", f"{memory:.0f}"]) + " |")


def cpu() -> str:
    """The processor's name where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    vector = next((name for flag, name in (("avx512_vnni", "AVX-512 VNNI"), ("avx2", "AVX2")) if flag in flags), "no AVX2")
    return f"{names[0] if names else platform.machine()}, {len(names)} threads, {vector}"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(prog="conformance.speed", description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--npukit", default="target/release/npukit")
    parser.add_argument("--rounds", type=int, default=21)
    args = parser.parse_args()
    times, others = [], []
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "mobilenet.tflite"
        large.write_bytes(mobilenet.build())
        models = [(name, args.models / f"{file}.tflite") for name, file in MODELS] + [("mobilenet", large)]
        for name, model in models:
            for accelerator in ACCELERATORS:
                single = bench(args.npukit, model, accelerator, args.rounds, "--against", "litert")
                batch = bench(args.npukit, model, accelerator, args.rounds, "--threads", "2")
                one, other = row(name, single, batch)
                times.append(one)
                others.append(other)
                print(one, flush=True)
    version = single["against"][0]["version"]
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    args.out.write_text(f"""# Speed

The fast engine against LiteRT {version} on the same network, both on one thread, in turn in one run. Made by

    cargo build --release -p npukit
    python -m conformance.speed --models DIR --out docs/speed.md

where DIR holds MLPerf Tiny's kws_ref_model, vww_96_int8, pretrainedResnet_quant and ad01_int8; mobilenet is `conformance/mobilenet.py`'s
(224x224, 301 M multiply-accumulates). Machine: {cpu()}; its load when this was written: {load}. Each figure is the median of
{args.rounds} turns' ratios. An inference of the engine includes writing its inputs and reading its outputs, LiteRT's doesn't.

The engine's time divided by LiteRT's: below 1 the compiled program runs faster in the model of the NPU than the network does in that
runtime on the same core.

| network | accelerator | / XNNPACK | / optimised kernels | / reference kernels | times faster than reference kernels |
|---|---|--:|--:|--:|--:|
{chr(10).join(times)}

Reading and planning happen once for a network; `npukit bench --threads 2` gives the batch's speed-up. Peak memory is that of the whole
`npukit bench` process.

| network | accelerator | constants, MiB | reading and planning, ms | ms per MiB (from 1 MiB up) | 2 threads, times faster | peak memory, MiB |
|---|---|--:|--:|--:|--:|--:|
{chr(10).join(others)}
""")


if __name__ == "__main__":
    main()

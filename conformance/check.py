"""Measures the generator: does Vela place each case wholly on the NPU, do the references run it, are its outputs alive?

    python -m conformance.check DIR [--accel ethos-u55-128 ...] [--no-oracles] [--report FILE.json]

Needs ethos-u-vela, tflite-micro and ai-edge-litert. Exit status 0 when every case compiles wholly for every
accelerator and at least one reference runs it, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from . import forked
from .oracles import ORACLES, input_seed, random_inputs

COMPILE_TIMEOUT = 300.0
RUN_TIMEOUT = 120.0

#: An output with fewer distinct values than this says little (unless it has that few elements).
ALIVE_VALUES = 4


def compile_case(model: Path, accelerator: str, folder: Path, extra: list[str]) -> str | None:
    """None when Vela makes one program of the whole model, else what is wrong."""

    def run() -> None:
        from ethosu.vela import vela

        vela.main([str(model), "--accelerator-config", accelerator, "--output-format", "raw", "--output-dir",
                   str(folder), *extra])

    outcome = forked.call(run, COMPILE_TIMEOUT)
    output = folder / f"{model.stem}_vela.npz"
    if output.exists() and outcome.failure is None:
        return None
    lines = [line.strip() for line in outcome.printed.splitlines()]
    # "Warning: No ... specified" is about the configuration; the reasons stand in the lines after other warnings.
    telling = [line for line in lines if "Error" in line or line.startswith(("Warning (", "Reason", "- "))]
    return "; ".join([*telling[:4], outcome.failure or "no output file"])


def run_oracle(name: str, model: bytes, inputs: list[np.ndarray]) -> dict[str, object]:
    """Whether a reference runs the model, and how alive the outputs are."""
    outcome = forked.call(lambda: ORACLES[name](model, inputs), RUN_TIMEOUT)
    if outcome.failure is not None:
        lines = [line.strip() for line in outcome.printed.splitlines() if "INFO" not in line and line.strip()]
        return {"runs": False, "why": (lines[0] if lines else outcome.failure)[:200]}
    outputs: list[np.ndarray] = outcome.value
    distinct = [int(np.unique(o).size) for o in outputs]
    alive = all(d >= min(ALIVE_VALUES, o.size) for d, o in zip(distinct, outputs))
    return {"runs": True, "distinct_values": distinct, "alive": alive}


def check_case(folder: Path, case: dict[str, object], accelerators: list[str], oracles: bool,
               extra: list[str]) -> dict[str, object]:
    """All verdicts about one case."""
    path = folder / f"{case['name']}.tflite"
    result: dict[str, object] = {"name": case["name"], "op": case["op"], "dtype": case["dtype"], "compiled": {}}
    with tempfile.TemporaryDirectory() as scratch:
        for accelerator in accelerators:
            output = Path(scratch) / accelerator
            output.mkdir()
            result["compiled"][accelerator] = compile_case(path, accelerator, output, extra)
    if oracles:
        model = path.read_bytes()
        inputs = random_inputs(model, case["input_ranges"], input_seed(case["name"]))
        for name in ORACLES:
            result[name] = run_oracle(name, model, inputs)
    return result


def summarise(results: list[dict[str, object]], oracles: bool) -> bool:
    """Prints the table and every failure; True when nothing is wrong."""
    rows: dict[tuple[str, str], Counter] = {}
    good = True
    for r in results:
        row = rows.setdefault((r["op"], r["dtype"]), Counter())
        row["cases"] += 1
        failures = {a: why for a, why in r["compiled"].items() if why}
        row["placed"] += not failures
        for accelerator, why in failures.items():
            print(f"{r['name']}: {accelerator}: {why}")
        good = good and not failures
        if oracles:
            runs = [name for name in ORACLES if r[name]["runs"]]
            for name in runs:
                row[name] += 1
            row["alive"] += any(r[name]["alive"] for name in runs)
            if not runs:
                good = False
                print(f"{r['name']}: no reference runs it: " + "; ".join(f"{n}: {r[n]['why']}" for n in ORACLES))
    columns = ["cases", "placed", *(list(ORACLES) + ["alive"] if oracles else [])]
    print(f"{'operator':36}" + "".join(f"{c:>8}" for c in columns))
    total: Counter = Counter()
    for (op, dtype), row in sorted(rows.items()):
        total.update(row)
        print(f"{op + ' ' + dtype:36}" + "".join(f"{row[c]:8}" for c in columns))
    print(f"{'all':36}" + "".join(f"{total[c]:8}" for c in columns))
    return good


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="conformance.check", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--accel", nargs="+", default=["ethos-u55-128"])
    parser.add_argument("--no-oracles", action="store_true")
    parser.add_argument("--report", type=Path, help="write all verdicts as JSON")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--vela", action="append", default=[], metavar="OPTION", help="a further option for Vela, e.g. "
                        "--vela=--optimise --vela=Size")
    args = parser.parse_args()
    manifest = json.loads((args.folder / "manifest.json").read_text())
    # Imported before forking, so that each child starts with them loaded.
    import ethosu.vela.vela  # noqa: F401
    if not args.no_oracles:
        import ai_edge_litert.interpreter  # noqa: F401
        import tflite_micro  # noqa: F401
    with ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda case: check_case(args.folder, case, args.accel, not args.no_oracles, args.vela),
                                manifest["cases"]))
    if args.report:
        args.report.write_text(json.dumps(results, indent=1) + "\n")
    return 0 if summarise(results, not args.no_oracles) else 1


if __name__ == "__main__":
    sys.exit(main())

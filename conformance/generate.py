"""Writes conformance models.

    python -m conformance.generate --out DIR --seed S --count N [--ops CONV_2D,ADD:int8,...] [--product u55|u65|u85]
    python -m conformance.generate --case CONV_2D:int8:123 --out FILE.tflite
    python -m conformance.generate --params FILE.json --out FILE.tflite
    python -m conformance.generate --params FILE.json --smaller     # one simpler case a line, as JSON
    python -m conformance.generate --list [--product u85]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .cases import build_case, draw_case, operators, smaller
from .draw import Draw
from .net import Invalid
from .registry import PRODUCTS

MANIFEST_VERSION = 1


def select(product: str, wanted: str | None) -> list[tuple[str, str]]:
    """The (operator, dtype) pairs of a product that `--ops` names; SystemExit if it names none that exist."""
    pairs = operators(product)
    if not wanted:
        return pairs
    chosen = []
    for item in wanted.split(","):
        op, _, dtype = item.strip().partition(":")
        found = [pair for pair in pairs if pair[0] == op.upper() and dtype in ("", pair[1])]
        if not found:
            raise SystemExit(f"no operator {item!r} on {product}; --list shows them")
        chosen += found
    return chosen


def case_seeds(seed: int, count: int, pairs: list[tuple[str, str]]) -> list[tuple[str, str, int]]:
    """`count` cases, going round the pairs. A case's seed depends on the run's seed, its pair and its round."""
    cases = []
    for i in range(count):
        op, dtype = pairs[i % len(pairs)]
        cases.append((op, dtype, Draw("run", seed, op, dtype, i // len(pairs)).seed()))
    return cases


def generate(out: Path, seed: int, count: int, product: str, ops: str | None) -> None:
    """Writes the models and manifest.json."""
    out.mkdir(parents=True, exist_ok=True)
    entries = []
    for op, dtype, case_seed in case_seeds(seed, count, select(product, ops)):
        params = draw_case(op, dtype, case_seed, product)
        name = f"{op.lower()}_{dtype}_{case_seed:08x}"
        case = build_case(params)
        (out / f"{name}.tflite").write_bytes(case.model)
        entries.append({
            "name": name, "op": op, "dtype": dtype, "seed": case_seed,
            "input_ranges": case.input_ranges, "parameters": params,
        })
    manifest = {"version": MANIFEST_VERSION, "seed": seed, "count": count, "product": product, "cases": entries}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def main(arguments: list[str] | None = None) -> int:
    """Command line; 0 when done, 1 when the parameters describe no model."""
    parser = argparse.ArgumentParser(prog="conformance.generate", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="folder, or the file of one model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--ops", help="comma-separated OP or OP:dtype")
    parser.add_argument("--product", choices=PRODUCTS, default="u55")
    parser.add_argument("--case", help="OP:dtype:seed, one case")
    parser.add_argument("--params", help="JSON, or the name of a file that holds it, or - for standard input")
    parser.add_argument("--smaller", action="store_true", help="print simpler parameters, one case a line")
    parser.add_argument("--list", action="store_true", help="print the operators and dtypes")
    args = parser.parse_args(arguments)

    if args.list:
        for op, dtype in operators(args.product):
            print(f"{op}:{dtype}")
        return 0
    if args.params or args.case:
        if args.params:
            params = _read_params(args.params)
        else:
            op, dtype, case_seed = args.case.split(":")
            params = draw_case(op, dtype, int(case_seed, 0), args.product)
        if args.smaller:
            for candidate in smaller(params):
                print(json.dumps(candidate), flush=True)
            return 0
        try:
            model = build_case(params).model
        except Invalid as problem:
            print(f"no such model: {problem}", file=sys.stderr)
            return 1
        if args.out:
            args.out.write_bytes(model)
        else:
            print(json.dumps(params))
        return 0
    if args.out is None:
        parser.error("--out is needed")
    generate(args.out, args.seed, args.count, args.product, args.ops)
    return 0


def _read_params(argument: str) -> dict[str, object]:
    if argument.lstrip().startswith("{"):
        return json.loads(argument)
    text = sys.stdin.read() if argument == "-" else Path(argument).read_text()
    return json.loads(text)


if __name__ == "__main__":
    sys.exit(main())

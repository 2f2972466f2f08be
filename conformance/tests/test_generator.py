"""The generator is deterministic, its cases build, and shrinking ends at something small."""

from __future__ import annotations

import hashlib
import json
import tempfile
import unittest
from pathlib import Path

import numpy as np

from conformance.cases import build_case, draw_case, operators, smaller
from conformance.draw import Draw
from conformance.generate import case_seeds, generate
from conformance.net import Invalid
from conformance.ops.convolution import draw_weights
from conformance.registry import PRODUCTS

#: SHA-256 over the models of `case_seeds(1, 200, ...)` on U55. It changes with the generator, never with the machine.
GOLDEN = "677c25c7555a47052ab146112670bfa11ac33fe0369501e2f22767983fbeb705"


class Determinism(unittest.TestCase):
    """Equal arguments give equal bytes."""

    def test_golden(self) -> None:
        digest = hashlib.sha256()
        for op, dtype, seed in case_seeds(1, 200, operators("u55")):
            digest.update(build_case(draw_case(op, dtype, seed)).model)
        self.assertEqual(digest.hexdigest(), GOLDEN)

    def test_runs_repeat(self) -> None:
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            for folder in (first, second):
                generate(Path(folder), seed=7, count=30, product="u65", ops="CONV_2D,ADD:int8,CHAIN:int8")
            names = sorted(p.name for p in Path(first).iterdir())
            self.assertEqual(len(names), 31)
            self.assertEqual(names, sorted(p.name for p in Path(second).iterdir()))
            for name in names:
                self.assertEqual((Path(first) / name).read_bytes(), (Path(second) / name).read_bytes(), name)

    def test_seed_matters(self) -> None:
        self.assertNotEqual(draw_case("CONV_2D", "int8", 1), draw_case("CONV_2D", "int8", 2))
        self.assertNotEqual(case_seeds(1, 1, [("ADD", "int8")]), case_seeds(2, 1, [("ADD", "int8")]))

    def test_parameters_suffice(self) -> None:
        """A case can be rebuilt from its JSON, which a manifest holds."""
        for op, dtype in operators("u85"):
            params = draw_case(op, dtype, 5, "u85")
            again = json.loads(json.dumps(params))
            self.assertEqual(params, again)
            self.assertEqual(build_case(params).model, build_case(again).model, f"{op} {dtype}")

    def test_every_operator_builds(self) -> None:
        for product in PRODUCTS:
            for op, dtype in operators(product):
                if op in ("CHAIN_LARGE", "BIG_WEIGHTS"):
                    continue
                for seed in range(3):
                    with self.subTest(op=op, dtype=dtype, seed=seed):
                        case = build_case(draw_case(op, dtype, seed, product))
                        self.assertEqual(case.model[4:8], b"TFL3")


class Shrinking(unittest.TestCase):
    """`smaller` yields valid cases and leads somewhere."""

    def shrink(self, params: dict, fails) -> dict:
        for _ in range(400):
            step = next((candidate for candidate in smaller(params) if fails(candidate)), None)
            if step is None:
                return params
            params = step
        self.fail("shrinking does not end")

    def test_chain_shrinks_to_one_layer(self) -> None:
        def fails(params: dict) -> bool:
            return any(layer["op"] == "CONV_2D" for layer in params["layers"])

        seed = next(s for s in range(100) if fails(draw_case("CHAIN", "int8", s)))
        least = self.shrink(draw_case("CHAIN", "int8", seed), fails)
        self.assertEqual([layer["op"] for layer in least["layers"]], ["CONV_2D"])
        self.assertEqual(least["input"]["shape"], [1, 1, 1, 1])
        self.assertLess(len(build_case(least).model), 1500)

    def test_property_is_kept(self) -> None:
        """Shrinking stops where the property would be lost: here a kernel of 3 columns or more under stride 2."""
        def fails(params: dict) -> bool:
            layer = params["layers"][0]
            return layer["kernel"][1] >= 3 and layer["stride"][0] >= 2

        seed = next(s for s in range(200) if fails(draw_case("DEPTHWISE_CONV_2D", "int8", s)))
        least = self.shrink(draw_case("DEPTHWISE_CONV_2D", "int8", seed), fails)["layers"][0]
        self.assertEqual((least["kernel"][1], least["stride"][0], least["stride"][1]), (3, 2, 1))

    def test_every_operator_shrinks(self) -> None:
        for op, dtype in operators("u85"):
            if op in ("CHAIN", "CHAIN_LARGE", "BIG_WEIGHTS"):
                continue
            with self.subTest(op=op, dtype=dtype):
                for candidate in smaller(draw_case(op, dtype, 9, "u85")):
                    self.assertEqual(candidate["op"], op)
                    self.assertEqual(candidate["dtype"], dtype)


class Weights(unittest.TestCase):
    """Distributions that a compiler looks for are what they say."""

    def test_two_of_four_channels_are_zero(self) -> None:
        for kind in ("pruned", "pruned few"):
            for depth in (1, 2, 3, 4, 7, 16, 33):
                weights = draw_weights(Draw(kind, depth), kind, (40, 3, 2, depth))
                padded = np.pad(weights, [(0, 0)] * 3 + [(0, -depth % 4)])
                zeros = (padded.reshape(-1, 4) == 0).sum(axis=1)
                self.assertEqual(zeros.min(), 2 if depth > 1 else 3, (kind, depth))
                self.assertGreater(np.unique(weights).size, 3)
        # Each place is kept somewhere, and each pair.
        pairs = {tuple(np.flatnonzero(group)) for group in draw_weights(Draw(1), "pruned few", (400, 4))}
        self.assertEqual(len(pairs), 6)

    def test_only_u85_gets_pruned_weights(self) -> None:
        for op in ("CONV_2D", "TRANSPOSE_CONV", "FULLY_CONNECTED"):
            kinds = {product: {draw_case(op, "int8", seed, product)["layers"][0]["weights"] for seed in range(60)}
                     for product in PRODUCTS}
            self.assertLessEqual({"pruned", "pruned few"}, kinds["u85"])
            self.assertFalse({"pruned", "pruned few"} & (kinds["u55"] | kinds["u65"]))


class Refusal(unittest.TestCase):
    """Contradictory parameters are refused, not patched up."""

    def test_kernel_larger_than_input(self) -> None:
        params = draw_case("CONV_2D", "int8", 1)
        params["layers"][0] |= {"kernel": [300, 1], "padding": "VALID", "stride": [1, 1], "dilation": [1, 1]}
        with self.assertRaises(Invalid):
            build_case(params)

    def test_no_layer(self) -> None:
        params = draw_case("ABS", "int8", 1)
        params["layers"] = []
        with self.assertRaises(Invalid):
            build_case(params)


if __name__ == "__main__":
    unittest.main()

"""The files are what the public schema says, with every buffer on a 16-byte boundary."""

from __future__ import annotations

import unittest

import numpy as np

from conformance import schema
from conformance.tflite_writer import BUFFER_ALIGNMENT, ModelWriter, Quant


def example() -> bytes:
    """A convolution with buffers of odd sizes."""
    model = ModelWriter("test")
    x = model.tensor("x", (1, 4, 4, 3), "int8", Quant(0.5, 3))
    y = model.tensor("y", (1, 4, 4, 5), "int8", Quant(0.25, -7))
    weights = model.constant("w", np.arange(15).reshape(5, 1, 1, 3), "int8", Quant((0.5, 0.25, 1.0, 2.0, 4.0)))
    bias = model.constant("b", np.arange(5) - 2, "int32", Quant((0.25, 0.125, 0.5, 1.0, 2.0)))
    model.operator("CONV_2D", [x, weights, bias], [y], {"padding": 1, "stride_w": 2, "stride_h": 3}, version=3)
    return model.finish([x], [y])


class Writer(unittest.TestCase):
    """Checks with the schema classes of ai-edge-litert."""

    def setUp(self) -> None:
        try:
            from ai_edge_litert import schema_py_generated
        except ImportError:
            self.skipTest("ai-edge-litert is not installed")
        self.tflite = schema_py_generated

    def test_read_back(self) -> None:
        data = example()
        model = self.tflite.Model.GetRootAs(data, 0)
        graph = model.Subgraphs(0)
        operator = graph.Operators(0)
        options = self.tflite.Conv2DOptions()
        options.Init(operator.BuiltinOptions().Bytes, operator.BuiltinOptions().Pos)
        self.assertEqual((options.Padding(), options.StrideW(), options.StrideH(), options.DilationWFactor()),
                         (1, 2, 3, 1))
        self.assertEqual(model.OperatorCodes(operator.OpcodeIndex()).BuiltinCode(), 3)
        weights = graph.Tensors(operator.Inputs(1))
        self.assertEqual(list(weights.ShapeAsNumpy()), [5, 1, 1, 3])
        self.assertEqual(list(weights.Quantization().ScaleAsNumpy()), [0.5, 0.25, 1.0, 2.0, 4.0])
        self.assertEqual(list(model.Buffers(weights.Buffer()).DataAsNumpy()), list(range(15)))
        self.assertEqual(graph.Tensors(graph.Inputs(0)).Quantization().ZeroPoint(0), 3)

    def test_alignment(self) -> None:
        data = example()
        model = self.tflite.Model.GetRootAs(data, 0)
        for index in range(1, model.BuffersLength()):
            table = model.Buffers(index)._tab
            self.assertEqual(table.Vector(table.Offset(4)) % BUFFER_ALIGNMENT, 0)

    def test_tables(self) -> None:
        """Codes, option types and option slots equal the schema's."""
        for name, code in schema.BUILTIN_CODES.items():
            self.assertEqual(getattr(self.tflite.BuiltinOperator, name), code, name)
        types = {v: k for k, v in vars(self.tflite.BuiltinOptions).items() if isinstance(v, int)}
        for opcode, table in schema.OPTIONS.items():
            reader = getattr(self.tflite, types[table.type_id])
            for name, option in table.fields.items():
                accessor = {"activation": "FusedActivationFunction", "dilation_w": "DilationWFactor",
                            "dilation_h": "DilationHFactor"}.get(name, name.title().replace("_", ""))
                accessor = {"NewShape": "NewShapeLength", "SqueezeDims": "SqueezeDimsLength"}.get(accessor, accessor)
                constants = getattr(reader, accessor).__code__.co_consts
                self.assertIn(4 + 2 * option.slot, constants, f"{opcode}.{name}")


class Refusals(unittest.TestCase):
    """What doesn't fit is refused when it is added."""

    def test_values(self) -> None:
        model = ModelWriter("test")
        with self.assertRaises(ValueError):
            model.constant("w", np.array([300]), "int8")
        with self.assertRaises(ValueError):
            model.tensor("w", (2,), "int8", None, np.zeros(3))
        with self.assertRaises(ValueError):
            model.operator("ADD", [0, 0], [0], {"stride_w": 1})


if __name__ == "__main__":
    unittest.main()

"""QUANTIZE between integers, where only tflite-micro has it: int8 to int32."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.host import run_graph_on_host
from tests.support.tflite_writer import tflite_bytes
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.unary.quantize import Quantize


def test_int8_to_int32_equals_tflite_micro() -> None:
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    x = Tensor("x", (256,), DType.INT8, Quantisation((0.07,), (-5,)))
    y = Tensor("y", (256,), DType.INT32, Quantisation((0.0003,), (11,)))
    op = Op("quantize", "quantize", ("x",), ("y",), Quantize(DType.INT32))
    graph = Graph.build("widened", [x, y], [op], ["x"], ["y"])
    values = np.arange(-128, 128).astype(np.int8)
    micro = runtime.Interpreter.from_bytes(tflite_bytes(graph))
    micro.set_input(values, 0)
    micro.invoke()
    np.testing.assert_array_equal(run_graph_on_host(graph, [values])[0], micro.get_output(0))

"""Models that compute in float32: which need --float, what is said, what is removed."""

from __future__ import annotations

from pathlib import Path

import ai_edge_litert.schema_py_generated as schema
import flatbuffers
import numpy as np
import pytest

from tests.support.floats import mixed, network
from tests.support.tflite_writer import tflite_bytes
from toolchain.deployment.verification import FLOAT_TOLERANCE, unit_of
from toolchain.errors import UnsupportedError
from toolchain.frontends import load_model
from toolchain.ir import DType, End, Graph, Tensor
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.quantise.float_use import float_use


def written(graph: Graph, folder: Path) -> Path:
    model = folder / f"{graph.name}.tflite"
    model.write_bytes(tflite_bytes(graph))
    return model


def test_a_float_model_needs_the_option(tmp_path: Path) -> None:
    model = written(network(), tmp_path)
    with pytest.raises(UnsupportedError, match=r"float model \(8 of 10.*thimble quantize.*--float"):
        plan_model(model, "netduinoplus2")
    plan = plan_model(model, "netduinoplus2", options=PlanOptions(allow_float=True))
    use = float_use(plan)
    assert use is not None
    assert (use.operators, use.weight_bytes) == (8, 4 * (162 + 6 + 54 + 6 + 192))
    assert use.int8_weight_bytes == use.weight_bytes // 4
    assert use.speedup > 2
    assert "not 1,680 B" in use.text


def test_a_mixed_model_needs_no_option(tmp_path: Path) -> None:
    plan = plan_model(written(mixed(), tmp_path), "netduinoplus2")
    use = float_use(plan)
    assert use is not None
    assert use.operators == 5
    assert use.int8_weight_bytes == use.weight_bytes


def test_float_arenas_are_four_bytes_an_element(tmp_path: Path) -> None:
    plan = plan_model(
        written(network(), tmp_path), "netduinoplus2", options=PlanOptions(allow_float=True)
    )
    assert plan.graph.tensors["stem"].size_bytes == 4 * 150
    assert plan.arena.size_bytes >= 4 * (150 + 150)


def test_half_precision_weights_are_widened(tmp_path: Path) -> None:
    """As TensorFlow's converter stores them: float16, with a DEQUANTIZE before each use."""
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(tflite_bytes(network())))
    (main,) = model.subgraphs
    code = schema.OperatorCodeT()
    code.builtinCode = code.deprecatedBuiltinCode = schema.BuiltinOperator.DEQUANTIZE
    model.operatorCodes.append(code)
    for index, tensor in enumerate(list(main.tensors)):
        data = model.buffers[tensor.buffer].data
        if data is None or tensor.type != schema.TensorType.FLOAT32:
            continue
        half = schema.TensorT()
        half.name, half.shape, half.buffer = tensor.name + b"/half", tensor.shape, tensor.buffer
        half.type = schema.TensorType.FLOAT16
        values = np.frombuffer(bytes(data), np.float32).astype(np.float16)
        model.buffers[tensor.buffer].data = np.frombuffer(values.tobytes(), np.uint8)
        tensor.buffer = 0
        widen = schema.OperatorT()
        widen.opcodeIndex = len(model.operatorCodes) - 1
        widen.inputs, widen.outputs = [len(main.tensors)], [index]
        main.tensors.append(half)
        main.operators.insert(0, widen)
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    path = tmp_path / "half.tflite"
    path.write_bytes(bytes(builder.Output()))
    graph = load_model(path)
    assert "dequantize" not in {op.kind for op in graph.ops}
    weights, before = graph.tensors["dense"], network().tensors["dense"]
    assert weights.dtype is DType.FLOAT32
    assert weights.constant is not None and before.constant is not None
    np.testing.assert_array_equal(
        weights.constant, before.constant.astype(np.float16).astype(np.float32)
    )


def test_what_counts_as_one() -> None:
    real = End(Tensor("y", (2,), DType.FLOAT32))
    assert unit_of(real, np.array([3.0, -8.0], np.float32)) == 8 * FLOAT_TOLERANCE
    assert unit_of(End(Tensor("y", (2,), DType.INT8)), np.array([3, 4], np.int8)) == 1

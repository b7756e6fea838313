"""Models of onnxruntime's dynamic quantiser: exact against ONNX Runtime where no function of a last
bit comes between.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from tests.support.onnx_models import model_of, prepared_of, random_feeds, run
from toolchain.deployment.verification import verify_model
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.onnx.reader import read
from toolchain.ir import DType
from toolchain.passes import Prepared
from toolchain.passes.refuse_float import refuse_float
from toolchain.planning.options import PlanOptions
from toolchain.quantise.post_training import float_inputs

RNG = np.random.default_rng(22)


def node(operator: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [output], output, **attributes)


def reals(*shape: int) -> NDArray[np.float32]:
    return (0.4 * RNG.standard_normal(shape) + 0.1).astype(np.float32)


def picture(batches: int = 1) -> onnx.ModelProto:
    """Convolutions of both kinds, Gemm, MatMul with and without a bias."""
    nodes = [
        node("Conv", "x w0 b0", "c0", pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Relu", "c0", "r0"),
        node("Conv", "r0 w1", "c1", group=8, pads=[0, 1, 1, 0]),
        node("Conv", "c1 w2 b2", "c2", group=2),
        node("GlobalMaxPool", "c2", "p"),
        node("Flatten", "p", "f"),
        node("Gemm", "f w3 b3", "g", transB=1),
        node("Relu", "g", "r"),
        node("MatMul", "r w4", "y"),
    ]
    constants = {
        "w0": reals(8, 3, 3, 3),
        "b0": reals(8),
        "w1": reals(8, 1, 2, 2),
        "w2": reals(6, 4, 1, 1),
        "b2": reals(6),
        "w3": reals(10, 6),
        "b3": reals(10),
        "w4": reals(10, 5),
    }
    return model_of(nodes, {"x": (batches, 3, 10, 8)}, ["y"], constants)


def words() -> onnx.ModelProto:
    """Two embeddings: one is multiplied as it is stored, the other is dequantised."""
    nodes = [
        node("Gather", "table i", "a"),
        node("MatMul", "a w0", "m"),
        node("Gather", "places i", "b"),
        node("Add", "m b", "s"),
        node("MatMul", "s w1", "d"),
        node("Add", "d b1", "y"),
    ]
    constants = {
        "table": reals(20, 12),
        "places": reals(20, 6),
        "w0": reals(12, 6),
        "w1": reals(6, 7),
        "b1": reals(7),
    }
    return model_of(nodes, {"i": (2, 5)}, ["y"], constants, dtype=TensorProto.INT64)


def dynamic(model: onnx.ModelProto, **options: object) -> bytes:
    """`model` as onnxruntime's dynamic quantiser writes it."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "dynamic.onnx"
        onnx.save(model, source)
        quantize_dynamic(source, target, **options)
        return target.read_bytes()


def optimised(data: bytes) -> bytes:
    """The model with ONNX Runtime's own operators."""
    with tempfile.TemporaryDirectory() as folder:
        options = onnxruntime.SessionOptions()
        level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(Path(folder) / "optimised.onnx")
        onnxruntime.InferenceSession(data, options)
        return Path(options.optimized_model_filepath).read_bytes()


def check_exact(data: bytes) -> Prepared:
    """Every element of every output is ONNX Runtime's."""
    prepared = prepared_of(data)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options)
    rng = np.random.default_rng(5)
    for feed in random_feeds(onnx.load_from_string(data), 6, seed=4):
        given = {
            end.name: rng.integers(0, 20, end.shape)
            if end.type == "tensor(int64)"
            else feed[end.name]
            for end in session.get_inputs()
        }
        for want, got in zip(session.run(None, given), run(prepared, given), strict=True):
            np.testing.assert_array_equal(got, want)
    return prepared


@pytest.mark.parametrize("weights", [QuantType.QInt8, QuantType.QUInt8])
@pytest.mark.parametrize("per_channel", [False, True])
def test_a_network_equals_onnx_runtime(weights: QuantType, per_channel: bool) -> None:
    reduced = per_channel  # 7 bits
    data = dynamic(picture(), weight_type=weights, per_channel=per_channel, reduce_range=reduced)
    prepared = check_exact(data)
    kinds = [op.kind for op in prepared.graph.ops if op.kind.startswith("dynamic_")]
    dense, conv = "dynamic_fully_connected", "dynamic_conv2d"
    assert kinds == [conv, "dynamic_depthwise_conv2d", conv, dense, dense]
    stored = [t for t in prepared.graph.tensors.values() if t.is_constant and len(t.shape) > 1]
    assert {tensor.dtype for tensor in stored} == {DType.INT8}


def test_images_are_quantised_together() -> None:
    check_exact(dynamic(picture(3)))


@pytest.mark.parametrize("weights", [QuantType.QInt8, QuantType.QUInt8])
def test_embeddings_stay_integers(weights: QuantType) -> None:
    prepared = check_exact(dynamic(words(), weight_type=weights, per_channel=True))
    tensors = prepared.graph.tensors
    gathers = [op for op in prepared.graph.ops if op.kind == "gather"]
    assert [tensors[op.inputs[0]].dtype for op in gathers] == [DType.INT8] * 2


def test_what_the_optimiser_makes_of_it() -> None:
    for model in (picture(), words()):
        data = optimised(dynamic(model))
        operators = {node.op_type for node in onnx.load_from_string(data).graph.node}
        assert operators & {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
        check_exact(data)


@pytest.mark.slow
def test_firmware_equals_onnx_runtime(tmp_path: Path) -> None:
    path = tmp_path / "dynamic.onnx"
    path.write_bytes(dynamic(picture(), weight_type=QuantType.QUInt8))
    result = verify_model(path, board="host", runs=6, options=PlanOptions(allow_float=True))
    assert (result.elements, result.max_difference) == (6 * 5, 0)


def test_two_dynamic_factors_are_refused_with_the_remedy() -> None:
    model = model_of([node("MatMul", "a b", "y")], {"a": (3, 4), "b": (4, 5)}, ["y"], {})
    data = dynamic(model, extra_options={"MatMulConstBOnly": False})
    with pytest.raises(UnsupportedError, match="MatMulConstBOnly': True"):
        read(data, Path("two.onnx"))
    assert read(dynamic(model, extra_options={"MatMulConstBOnly": True}), Path("two.onnx")).ops


def test_a_recurrent_layer_is_refused_with_the_remedy() -> None:
    nodes = [
        helper.make_node("LSTM", ["x", "w", "r", "b"], ["s", "h"], hidden_size=4),
        node("Reshape", "h flat", "f"),
        node("MatMul", "f m", "y"),
    ]
    constants = {
        "w": reals(1, 16, 3),
        "r": reals(1, 16, 4),
        "b": reals(1, 32),
        "flat": np.array([1, 4]),
        "m": reals(4, 2),
    }
    model = model_of(nodes, {"x": (5, 1, 3)}, ["y"], constants)
    with pytest.raises(UnsupportedError, match="op_types_to_quantize"):
        read(dynamic(model), Path("lstm.onnx"))
    remedied = read(dynamic(model, op_types_to_quantize=["MatMul", "Conv", "Gather"]), Path("l"))
    assert "dynamic_fully_connected" in {op.kind for op in remedied.ops}


def test_the_float_model_that_it_was_made_of_is_asked_for(tmp_path: Path) -> None:
    """`thimble quantize` does not take what is in part quantised, so no refusal sends there."""
    model = onnx.shape_inference.infer_shapes(picture())
    file = tmp_path / "dynamic.onnx"
    file.write_bytes(dynamic(model))
    with pytest.raises(UnsupportedError, match="quantise the float model that it was made of"):
        refuse_float(prepared_of(file.read_bytes()).graph, allowed=False)
    with pytest.raises(InputError, match="give the float model that it was made of"):
        float_inputs(file)

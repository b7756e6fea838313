"""Operators that onnxruntime's quantiser ends in an error on: worked around, or left in float."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from onnxruntime import InferenceSession
from onnxruntime.quantization import qdq_quantizer

from tests.support.onnx_models import model_of
from toolchain.errors import InputError
from toolchain.frontends import load_model
from toolchain.passes import prepare
from toolchain.passes.refuse_float import refuse_float
from toolchain.quantise.onnx_quantiser import excluding, with_flat_norms
from toolchain.quantise.post_training import Quantised, quantise_samples

RNG = np.random.default_rng(5)


def reals(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def net() -> onnx.ModelProto:
    """A dense layer, a layer normalisation over two axes, another that shares its offset."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("LayerNormalization", ["m", "g", "b"], ["n"], "norm", axis=1),
        helper.make_node("LayerNormalization", ["n", "g2", "b"], ["y"], axis=-2, epsilon=0.01),
    ]
    constants = {"w": reals(6, 8), "g": reals(5, 8), "g2": reals(5, 8), "b": reals(5, 8)}
    return model_of(nodes, {"x": (1, 5, 6)}, ["y"], constants)


def quantised(folder: Path) -> Quantised:
    model = folder / "net.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(net()), str(model))
    samples = [{"x": reals(1, 5, 6)} for _ in range(8)]
    return quantise_samples(model, samples, folder / "int8.onnx")


def test_layer_norms_over_two_axes_become_int8(tmp_path: Path) -> None:
    result = quantised(tmp_path)
    assert not result.left_in_float and result.outputs[0].noise_db > 25
    graph = prepare(load_model(tmp_path / "int8.onnx")).graph
    assert [op.kind for op in graph.ops].count("layer_norm") == 2


@pytest.mark.parametrize(("gain", "axis"), [((3, 5), 1), ((1, 5), 2), ((4, 3, 5), 1)], ids=str)
def test_norms_give_the_reference_s_numbers_whatever_their_gains_span(
    gain: tuple[int, ...], axis: int
) -> None:
    """Gains are broadcast: those of fewer axes than the normalisation has are left as they are."""
    node = helper.make_node("LayerNormalization", ["x", "g", "b"], ["y"], "norm", axis=axis)
    constants = {"g": reals(*gain), "b": reals(*gain)}
    model = model_of([node], {"x": (2, 4, 3, 5)}, ["y"], constants)
    model = onnx.shape_inference.infer_shapes(model)
    feed = {"x": reals(2, 4, 3, 5)}
    (want,) = InferenceSession(model.SerializeToString()).run(None, feed)
    with_flat_norms(model)
    (got,) = InferenceSession(model.SerializeToString()).run(None, feed)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert (len(model.graph.node) == 3) == (gain == (4, 3, 5))


def test_what_cannot_be_quantised_stays_in_float(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error on a weight's name, as in onnxruntime's own variables, names the operator."""
    adjust = qdq_quantizer.QDQQuantizer._adjust_weight_scale_for_int32_bias

    def failing(self, input_scale, weight_scale, weight_name, *more):
        if "g2" in weight_name:
            raise ValueError("ambiguous")
        return adjust(self, input_scale, weight_scale, weight_name, *more)

    monkeypatch.setattr(qdq_quantizer.QDQQuantizer, "_adjust_weight_scale_for_int32_bias", failing)
    result = quantised(tmp_path)
    name, why = result.left_in_float[0]
    assert name == "LayerNormalization (LayerNormalization)" and "(ambiguous)" in why
    graph = prepare(load_model(tmp_path / "int8.onnx")).graph
    refuse_float(graph, allowed=False)
    assert [op.kind for op in graph.ops].count("layer_norm") == 1


def test_an_error_that_stays_is_told_with_its_operator() -> None:
    graph = net().graph

    def always(_: list[str]) -> None:
        node = graph.node[1]
        raise ValueError(f"not a {node.op_type[:3]}")

    def of_nothing(_: list[str]) -> None:
        raise ValueError("out of luck")

    with pytest.raises(InputError, match=r"the model \(LayerNormalization 'norm'\): not a Lay"):
        excluding(always, graph)
    with pytest.raises(InputError, match=r"cannot quantise the model: out of luck"):
        excluding(of_nothing, graph)

"""Operators that round as ONNX Runtime does, in C: the same bytes as their reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tests.support.host import random_inputs, reference_outputs, run_graphs_on_host
from tests.support.onnx_models import compare, model_of, prepared_of, quantised
from toolchain.ir import DType, End, Graph, Op, Quantisation, Tensor
from toolchain.ops import forms
from toolchain.ops.arithmetic.fixed_point import ScaleError
from toolchain.ops.arithmetic.onnx_rounding import onnx_factors
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.convolution.transpose_conv2d import TransposeConv2D
from toolchain.ops.elementwise.multiplication import Mul
from toolchain.ops.matmul.common import BatchMatMul
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.unary.quantize import Quantize

DIGITS = Path(__file__).parents[2] / "examples" / "digits"
SAMPLES = 10


def _onnx_sample(kind: str, rng: np.random.Generator) -> Graph:
    graph = forms()[kind].sample(rng)
    (op,) = graph.ops
    assert isinstance(
        op.attributes, BatchMatMul | Conv2D | DepthwiseConv2D | Mul | Reduce | TransposeConv2D
    )
    attributes = replace(op.attributes, rounding=Rounding.ONNX)
    if isinstance(attributes, Reduce) and rng.random() < 0.5:
        same = replace(graph.output(op), quantisation=graph.input(op, 0).quantisation)
        tensors = [same if t.name == same.name else t for t in graph.tensors.values()]
        return graph.with_ops([replace(op, attributes=attributes)], tensors)
    return graph.with_ops([replace(op, attributes=attributes)])


KINDS = ["batch_matmul", "conv2d", "depthwise_conv2d", "mean", "mul", "sum", "transpose_conv2d"]


@pytest.mark.parametrize("kind", KINDS)
def test_c_equals_reference(kind: str) -> None:
    rng = np.random.default_rng(11)
    graphs = [_onnx_sample(kind, rng) for _ in range(SAMPLES)]
    cases = [(graph, random_inputs(graph, rng)) for graph in graphs]
    for (graph, inputs), got in zip(cases, run_graphs_on_host(cases, sanitize=True), strict=True):
        (want,), (have,) = reference_outputs(graph, inputs), got
        np.testing.assert_array_equal(have, want, err_msg=str(graph.ops))


@pytest.mark.parametrize("kind", ["conv2d", "depthwise_conv2d"])
def test_weights_with_a_zero_point(kind: str) -> None:
    rng = np.random.default_rng(12)
    cases = []
    for _ in range(SAMPLES):
        graph = _onnx_sample(kind, rng)
        zero_point = int(rng.integers(-128, 128))
        q = Quantisation(graph.tensors["weights"].q.scales[:1], (zero_point,))
        weights = replace(graph.tensors["weights"], quantisation=q)
        tensors = [weights if t.name == "weights" else t for t in graph.tensors.values()]
        whole = graph.with_ops(graph.ops, tensors)
        cases.append((whole, random_inputs(whole, rng)))
    for (graph, inputs), got in zip(cases, run_graphs_on_host(cases, sanitize=True), strict=True):
        (want,), (have,) = reference_outputs(graph, inputs), got
        np.testing.assert_array_equal(have, want, err_msg=str(graph.ops))


def test_float_inputs_become_int8_with_halves_to_even() -> None:
    q = Quantisation((0.5,), (3,))
    reals = np.array([0.25, 0.75, -0.25, 1e9, -1e9, np.inf, -np.inf, np.nan, 31.3], np.float32)
    tensors = [Tensor("x", (9,), DType.FLOAT32, None), Tensor("y", (9,), DType.INT8, q)]
    op = Op("quantize", "quantize", ("x",), ("y",), Quantize(DType.INT8, halves_to_even=True))
    graph = Graph.build("even", tensors, [op], ["x"], ["y"])
    ((have,),) = run_graphs_on_host([(graph, (reals,))], sanitize=True)
    (want,) = reference_outputs(graph, (reals,))
    np.testing.assert_array_equal(have, want)
    np.testing.assert_array_equal(have, [3, 5, 3, 127, -128, 127, -128, 3, 66])


def test_operators_that_want_the_input_at_scales_of_their_own() -> None:
    """Each slice of the float input is quantised by itself, after it was taken."""
    nodes, constants, outputs = [], {}, []
    for index, scale in enumerate((0.01, 0.1)):
        names = [f"{stem}{index}" for stem in ("part", "stored", "y")]
        constants |= {f"at{index}": np.array(index), f"scale{index}": np.float32(scale)}
        constants[f"zero{index}"] = np.int8(index)
        nodes.append(helper.make_node("Gather", ["x", f"at{index}"], names[:1], axis=1))
        q = [f"scale{index}", f"zero{index}"]
        nodes.append(helper.make_node("QuantizeLinear", [names[0], *q], [names[1]]))
        nodes.append(helper.make_node("DequantizeLinear", [names[1], *q], [names[2]]))
        outputs.append(names[2])
    data = model_of(nodes, {"x": (1, 2, 5)}, outputs, constants).SerializeToString()
    feeds = [{"x": np.linspace(-3, 3, 10, dtype=np.float32).reshape(1, 2, 5)}]
    assert compare(data, feeds).differing == 0


def test_bundled_model_in_c_agrees_with_onnxruntime() -> None:
    data = (DIGITS / "digits_qdq.onnx").read_bytes()
    prepared = prepared_of(data)
    (source,), (target,) = prepared.graph.inputs, prepared.graph.outputs
    with np.load(DIGITS / "samples.npz") as samples:
        images = (samples["images"][:6] / 16).astype(np.float32)[:, None]
    ends = {boundary.tensor: boundary for boundary in prepared.boundaries}
    inlet = End(prepared.graph.tensors[source], ends.get(source))
    outlet = End(prepared.graph.tensors[target], ends.get(target))
    cases = [(prepared.graph, (inlet.to_graph(image[None]),)) for image in images]
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    for image, (got,) in zip(images, run_graphs_on_host(cases), strict=True):
        (want,) = session.run(None, {source: image[None]})
        steps = np.abs(outlet.to_model(got) - want) / outlet.tensor.q.scale
        assert steps.max() < 1.5


def test_power_of_two_scales_still_have_integers() -> None:
    """Exact halves: no integers round them to even, so they go away from zero."""
    weights = np.random.default_rng(0).integers(-3, 4, (4, 3, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], "conv")
    prepared = prepared_of(quantised(model_of([node], {"x": (1, 3, 5, 5)}, ["y"], {"w": weights})))
    graph = prepared.graph
    tensors = []
    for tensor in graph.tensors.values():
        q = tensor.quantisation
        if q is not None:
            scale = 0.25 if tensor.name in graph.outputs else 0.125
            q = replace(q, scales=(scale,) * len(q.scales))
        tensors.append(replace(tensor, quantisation=q))
    exact = graph.with_ops(graph.ops, tensors)
    inputs = random_inputs(exact, np.random.default_rng(1))
    ((have,),) = run_graphs_on_host([(exact, inputs)])
    (want,) = reference_outputs(exact, inputs)
    np.testing.assert_array_equal(have, want)


def test_a_sum_whose_step_saturates_the_output_is_refused() -> None:
    ends = (("x", 1.0), ("y", 1e-30))
    x, y = (Tensor(n, (1,), DType.INT8, Quantisation((s,), (0,))) for n, s in ends)
    with pytest.raises(ScaleError, match="one step of its sums"):
        onnx_factors(x, x, y)
    assert onnx_factors(x, x, x) == 1

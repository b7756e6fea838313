"""`thimble.evaluate`: beside plans of the same networks, in float and int8."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.zoo_mobile import mobilenet_v2
from benchmarks.zoo_network import in_float
from toolchain import evaluate, passes
from toolchain.boards import board
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends import load_model
from toolchain.ir import Quantisation
from toolchain.memory.firmware_size import estimated_need
from toolchain.ops.arithmetic.fixed_point import (
    ScaleError,
    quantize_multiplier,
    quantize_multipliers,
)
from toolchain.ops.lowering import lower
from toolchain.planner import plan_graph, plan_model
from toolchain.planning.options import PlanOptions
from toolchain.quantise.as_int8 import as_int8
from toolchain.report.latency import predict_latency
from toolchain.resources import RUNTIME_C
from toolchain.sweep.alike import lower_alike

ROOT = RUNTIME_C.parent
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
MODELS = ROOT.parent / "shared" / "models"
BOARD = "nucleo-u575zi-q"
PLAIN = PlanOptions(nearly_free=False, optimise="size", kernels="thimble")  # type: ignore[arg-type]


@pytest.mark.parametrize("model", [DIGITS, ROOT / "examples" / "digits" / "digits_qdq.onnx"])
def test_an_estimate_is_what_a_plan_without_extras_says(model: Path) -> None:
    found = evaluate(model, BOARD)
    plan = plan_model(model, BOARD, replace(PLAIN, ram_bytes=found.ram_bytes))
    need = estimated_need(plan)
    assert found.arena_bytes == plan.arena.size_bytes
    assert found.lower_bound_bytes == plan.schedule.lower_bound_bytes
    assert found.proved
    assert found.ram_bytes == need.ram_bytes
    assert 1 <= found.milliseconds / predict_latency(plan).milliseconds < 1.04  # lean kernels
    assert found.flash_bytes == pytest.approx(need.flash_bytes, rel=0.1)
    assert found.macs == plan.macs


@pytest.mark.parametrize(
    "name",
    ["mlperf_tiny_kws_dscnn_int8", "mlperf_tiny_ic_resnet8_int8", "tinyengine_mcunet_vww_int8"],
)
def test_a_float_network_is_estimated_as_its_int8_one(name: str) -> None:
    file = MODELS / f"{name}.tflite"
    if not file.exists():
        pytest.skip("the models are not beside the checkout")
    graph = passes.prepare(load_model(file), passes.KEEPING_CHANNELS).graph
    want, got = evaluate(graph, BOARD), evaluate(in_float(graph), BOARD)
    assert got.arena_bytes == want.arena_bytes
    assert got.milliseconds == pytest.approx(want.milliseconds, rel=0.05)
    assert got.flash_bytes == pytest.approx(want.flash_bytes, rel=0.06)


@pytest.mark.slow
def test_proved_is_what_a_plan_says() -> None:
    plan = plan_model(DIGITS, BOARD)
    found = evaluate(DIGITS, BOARD, proved=True)
    assert found.arena_bytes == plan.arena.size_bytes
    assert found.flash_bytes == estimated_need(plan).flash_bytes
    small = evaluate(DIGITS, BOARD, proved=True, options=PlanOptions(ram_bytes=4096))
    assert small.ram_bytes <= 4096 < found.ram_bytes


def test_a_graph_that_was_built_and_an_onnx_model() -> None:
    graph = mobilenet_v2("candidate", 0.35, 96, 10)
    found = evaluate(graph, BOARD)
    plan = plan_graph(passes.prepare(graph).graph, board(BOARD), PLAIN)
    assert found.arena_bytes == plan.arena.size_bytes
    onnx = pytest.importorskip("onnx")
    file = ROOT / "examples" / "digits" / "digits_qdq.onnx"
    assert evaluate(onnx.load(file), BOARD) == evaluate(file, BOARD)


def test_a_float_onnx_model_with_a_batch_normalisation() -> None:
    """Which goes into the convolution before it, with the ReLU behind it."""
    pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(3)

    def model(normalised: bool) -> object:
        values = {
            "w": rng.normal(size=(16, 3, 3, 3)),
            "b": np.zeros(16),
            "n": np.ones((1, 16, 1, 1)),
        }
        names = ["x", "w"] if normalised else ["x", "w", "b"]
        pads = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        nodes = [helper.make_node("Conv", names, ["c"], "conv", **pads)]
        if normalised:
            nodes.append(helper.make_node("Mul", ["c", "n"], ["m"], "scale"))
            nodes.append(helper.make_node("Add", ["m", "n"], ["a"], "shift"))
        nodes.append(helper.make_node("Relu", ["a" if normalised else "c"], ["y"], "relu"))
        ends = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, channels, 16, 16])
            for name, channels in (("x", 3), ("y", 16))
        ]
        held = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in values.items()]
        graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])

    assert evaluate(model(True), BOARD) == evaluate(model(False), BOARD)


def test_what_is_no_model_or_has_no_kernel_is_refused() -> None:
    with pytest.raises(InputError, match="dict is no model that can be estimated"):
        evaluate({}, BOARD)
    with pytest.raises(InputError, match="give proved=True, too"):
        evaluate(DIGITS, BOARD, options=PlanOptions())
    with pytest.raises(InputError, match="nowhere"):
        evaluate(DIGITS, "nowhere")
    graph = passes.prepare(load_model(DIGITS)).graph
    assert not as_int8(in_float(graph)).computes_in_float


def test_many_multipliers_are_those_of_one_each() -> None:
    rng = np.random.default_rng(0)
    ranges = [
        10.0 ** rng.uniform(-14, 0, 2000),
        2.0 ** rng.integers(-40, 0, 200),
        np.nextafter(2.0 ** rng.integers(-20, 0, 200), 0),
        np.zeros(2),
        rng.uniform(0, 3, 200),
    ]
    for reals in ranges:
        multipliers, shifts = quantize_multipliers(reals)
        each = [quantize_multiplier(real) for real in reals.tolist()]
        assert list(zip(multipliers.tolist(), shifts.tolist(), strict=True)) == each
    for bad in (-1.0, np.inf, np.nan):
        with pytest.raises(ScaleError):
            quantize_multipliers(np.array([0.5, bad]))


def test_operators_that_are_alike_share_a_kernel_that_is_the_same() -> None:
    """As if each had been asked for by itself, and one kernel for all of them."""
    core = board(BOARD).core
    graph = as_int8(
        passes.prepare(in_float(mobilenet_v2("n", 0.35, 96, 10)), passes.KEEPING_CHANNELS).graph
    )
    shared, own = lower_alike(graph, core).kernels, lower(graph, core).kernels
    assert len(set(map(id, shared))) < len(shared)
    for one, other in zip(shared, own, strict=True):
        assert one.title == other.title
        assert one.functions == other.functions
        assert one.overlaps == other.overlaps
        assert one.terms == other.terms
        assert one.packed_bytes == other.packed_bytes
        found = [(each.title, each.scratch_bytes, each.terms) for each in one.forms()]
        assert found == [(each.title, each.scratch_bytes, each.terms) for each in other.forms()]
    assert lower_alike(graph, core).kernels[3] is shared[3]


def test_an_operator_without_a_kernel_is_named_though_it_is_like_others() -> None:
    graph = passes.prepare(load_model(DIGITS)).graph
    first = graph.ops[0]
    tensor = replace(graph.tensors[first.outputs[0]], quantisation=Quantisation((1e-30,), (0,)))
    broken = replace(graph, tensors={**graph.tensors, tensor.name: tensor})
    with pytest.raises(UnsupportedError, match=first.name):
        lower_alike(broken, board(BOARD).core)

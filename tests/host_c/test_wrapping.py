"""Sums that wrap: the portable C under sanitizers, and LiteRT's kernels, give the same bytes."""

from __future__ import annotations

import tempfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.support import wrapping
from tests.support.host import model_of, plan_of, random_inputs, reference_outputs
from tests.support.litert import run_litert
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import HOST, Core, board
from toolchain.device.host import HostProgram, build
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.ops import kernel_of
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.preference import Preference
from toolchain.ops.spec import Array

KINDS = ("conv2d", "depthwise_conv2d", "fully_connected", "transpose_conv2d")
M0 = board("mps2-an385-v6m").core
M3 = Core("cortex-m3")
M55 = Core("cortex-m55", dsp=True, mve=True, fpu=True)
CORES = (HOST, M0, M3, M55)


def ends(graph: Graph, rng: np.random.Generator) -> Sequence[Array]:
    """Inputs at the ends of their type, and between."""
    inputs = random_inputs(graph, rng)
    kept = rng.random()
    least, most = np.int8(-128), np.int8(127)
    return [np.where(rng.random(x.shape) < kept, rng.choice([least, most]), x) for x in inputs]


def check(
    graphs: Sequence[Graph],
    rng: np.random.Generator,
    core: Core = HOST,
    make: Callable[[Graph, np.random.Generator], Sequence[Array]] = ends,
    preference: Preference = Preference.AUTO,
) -> None:
    plans = [plan_of(graph, core, preference=preference) for graph in graphs]
    models = [model_of(plan, f"m{index}") for index, plan in enumerate(plans)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, graph in enumerate(graphs):
                data = tflite_bytes(graph)
                for _ in range(3):
                    inputs = make(graph, rng)
                    wanted = run_litert(data, inputs)[0]
                    text = f"{index} {plans[index].lowered.kernels[0].functions}"
                    np.testing.assert_array_equal(
                        reference_outputs(graph, inputs)[0], wanted, err_msg=text
                    )
                    got = running.run(inputs, index, restart=True)[0]
                    np.testing.assert_array_equal(got, wanted, err_msg=text)


@pytest.mark.parametrize("core", CORES, ids=lambda core: core.name)
def test_biases_at_the_ends_of_int32(core: Core) -> None:
    rng = np.random.default_rng(zlib.crc32(core.name.encode()))
    check([wrapping.biased(kind, rng) for kind in KINDS for _ in range(8)], rng, core)


@pytest.mark.parametrize("core", (HOST, M55), ids=lambda core: core.name)
def test_products_alone_wrap(core: Core) -> None:
    rng = np.random.default_rng(3)
    graphs = [
        wrapping.dense(rng),
        wrapping.matmul(rng, constant=True),
        wrapping.matmul(rng, constant=False),
        wrapping.four_bits(rng),
        wrapping.hybrid(rng),
    ]
    check(graphs, rng, core, wrapping.deep_inputs)


def test_a_hybrid_layer_that_litert_rounds_in_parts_is_refused() -> None:
    graph = wrapping.hybrid(np.random.default_rng(3), Range.ASYMMETRIC)
    with pytest.raises(UnsupportedError, match="a sum of 140000 products may overflow"):
        kernel_of(graph.ops[0], graph, HOST)


def test_fully_connected_of_computed_weights() -> None:
    rng = np.random.default_rng(4)
    check([wrapping.dense(rng, computed=True)], rng, HOST, wrapping.deep_inputs)


def test_gates_whose_biases_lie_at_the_ends() -> None:
    rng = np.random.default_rng(5)
    graphs = [wrapping.lstm(rng) for _ in range(8)]
    functions = {kernel_of(graph.ops[0], graph, HOST).functions[0] for graph in graphs}
    assert functions == {"thimble_lstm_wrapped_s8"}
    check(graphs, rng)


@pytest.mark.parametrize("core", (HOST, M55), ids=lambda core: core.name)
def test_cell_states_without_a_tanh(core: Core) -> None:
    """LiteRT multiplies the output gate by the input gate, which lies where the tanh would."""
    rng = np.random.default_rng(8)
    graphs = [wrapping.without_tanh(rng, at) for at in (*range(-30, -15), *range(-8, 2))]
    for graph in graphs:
        assert kernel_of(graph.ops[0], graph, core).functions == ("thimble_lstm_without_tanh_s8",)
    check(graphs, rng, core)


@pytest.mark.parametrize("exponent", (-31, 2))
def test_a_cell_state_that_litert_shifts_too_far_is_refused(exponent: int) -> None:
    graph = wrapping.without_tanh(np.random.default_rng(9), exponent)
    with pytest.raises(UnsupportedError, match=r"not a power of two, 2\^-30 to 2\^1"):
        kernel_of(graph.ops[0], graph, HOST)


@pytest.mark.parametrize("kind", ("conv2d", "depthwise_conv2d"))
def test_cmsis_nn_is_left_out_where_its_sums_are_undefined(kind: str) -> None:
    rng = np.random.default_rng(6)
    graph = wrapping.biased(kind, rng)
    kernel = kernel_of(graph.ops[0], graph, M55, Preference.CMSIS_NN)
    assert not kernel.of_cmsis_nn
    assert "may wrap" in kernel.instead


@pytest.mark.parametrize("core", (HOST, M3, M55), ids=lambda core: core.name)
def test_scaled_sums_of_int16_wrap(core: Core) -> None:
    """CMSIS-NN holds twice such a sum in int32, so that Thimble's kernels take them."""
    kinds = ("conv2d", "depthwise_conv2d", "transpose_conv2d", "batch_matmul")
    rng = np.random.default_rng(11)
    graphs = [wrapping.finer(f"{kind}.int16", rng) for kind in kinds for _ in range(8)]
    for graph in graphs:
        functions = kernel_of(graph.ops[0], graph, core).functions
        assert not any(name.startswith("arm_") for name in functions), functions
    check(graphs, rng, core, ends_of_int16)


OF_INT64 = ("conv2d.int16", "depthwise_conv2d.int16", "transpose_conv2d.int16")


def test_the_largest_factors_of_int16() -> None:
    """A shift of 14: LiteRT then shifts right by one bit."""
    rng = np.random.default_rng(12)
    graphs = [wrapping.at_factor(kind, 2.0**13, rng) for kind in OF_INT64 for _ in range(4)]
    check(graphs, rng, make=ends_of_int16)


@pytest.mark.parametrize("kind", OF_INT64)
@pytest.mark.parametrize("factor", (wrapping.BELOW, 2.0**14))
def test_factors_that_litert_shifts_by_less_than_a_bit(kind: str, factor: float) -> None:
    """The scale below 2^14 is rounded up to it."""
    graph = wrapping.at_factor(kind, factor, np.random.default_rng(13))
    with pytest.raises(UnsupportedError, match="LiteRT's scaling ends at 2"):
        kernel_of(graph.ops[0], graph, HOST)


def ends_of_int16(graph: Graph, rng: np.random.Generator) -> Sequence[Array]:
    """Inputs at the ends of int16, and between."""
    kept = rng.random()
    return [
        np.where(rng.random(x.shape) < kept, rng.choice(np.array([-32768, 32767], np.int16)), x)
        for x in random_inputs(graph, rng)
    ]

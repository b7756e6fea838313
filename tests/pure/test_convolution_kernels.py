"""The kernels of convolutions as values: packed late, checked early, explained in the C."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import pytest

from toolchain.boards import HOST, Core, board
from toolchain.codegen import generate
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Quantisation
from toolchain.kernels import cmsis_nn
from toolchain.ops import forms, kernel_of
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution.kernels.thimble_convolve_packed_s8 import (
    LARGEST_SUM,
    MOST_TAPS,
    runs_of,
)
from toolchain.ops.kernel import Kernel
from toolchain.planner import plan_graph
from toolchain.timing.kernel_shapes import graph_of_shape

COLUMN = {"kind": "depthwise_conv2d", "input": [1, 12, 2, 3], "kernel": [3, 1]}
ROW = {"kind": "depthwise_conv2d", "input": [1, 2, 12, 3], "kernel": [1, 3]}
M4 = Core("cortex-m4", dsp=True, fpu=True)


def _kernel(graph: Graph) -> Kernel:
    return kernel_of(graph.ops[0], graph, HOST)


def _text(graph: Graph) -> str:
    plan = plan_graph(graph, board("host"))
    return "\n".join(generate(plan, HOST, cmsis_nn.find(), name="net").files.values())


def test_weights_are_packed_when_they_are_first_read_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed = []
    pack = packing.pair_words
    monkeypatch.setattr(packing, "pair_words", lambda *given: packed.append(1) or pack(*given))
    kernel = _kernel(
        graph_of_shape({"kind": "conv2d", "input": [1, 5, 5, 3], "channels": 2, "kernel": [2, 2]})
    )
    assert kernel.overlaps and kernel.terms and not packed
    assert kernel.constant_bytes == kernel.constants[0].data.nbytes
    assert len(packed) == 1


def test_runs_of_packed_sums_fit_their_halves_of_a_word() -> None:
    """Both pixels at their least and greatest: no sum of a run leaves int16."""
    rng = np.random.default_rng(4)
    for spread in (2, 40, 128):
        filters = rng.integers(-spread, spread, (4, 60)).astype(np.int8)
        ends = runs_of(filters)
        assert ends[-1] == 60 and all(b > a for a, b in pairwise((0, *ends)))
        for begin, end in pairwise((0, *ends)):
            run = filters[:, begin:end].astype(np.int64)
            greatest = np.maximum(127 * run, -128 * run).sum(axis=1)
            least = np.minimum(127 * run, -128 * run).sum(axis=1)
            assert greatest.max() <= 2**15 - 1 and least.min() >= 1 - 2**15
            assert end - begin <= MOST_TAPS
            longer = np.abs(filters[:, begin : end + 1].astype(np.int64)).sum(axis=1).max()
            assert end - begin == MOST_TAPS or end == 60 or longer > LARGEST_SUM


def test_sums_that_overrun_are_refused_before_anything_is_packed() -> None:
    graph = forms()["conv2d"].sample(np.random.default_rng(1))
    weights = graph.tensors["weights"]
    coarse = replace(weights, quantisation=Quantisation((2.0**12,), (0,)))
    tensors = MappingProxyType({**graph.tensors, "weights": coarse})
    with pytest.raises(UnsupportedError, match="overruns 32 bits"):
        _kernel(replace(graph, tensors=tensors))


def test_a_packed_array_says_what_it_holds_and_for_which_kernel() -> None:
    shape = {"kind": "conv2d", "input": [1, 9, 9, 3], "channels": 5, "kernel": [3, 2]}
    wanted = "biases, filters [5x3x2x3] and requantisation, packed for thimble_convolve_s8"
    assert wanted in _text(graph_of_shape(shape))


def test_an_image_that_is_walked_transposed_is_said_to_be() -> None:
    """As a row and as a column, the same numbers; their order in memory differs."""
    said = "Height and width are swapped below"
    column, row = (graph_of_shape(shape) for shape in (COLUMN, ROW))
    walked, plain = (_kernel(graph).calls[0] for graph in (column, row))
    assert walked.function == plain.function == "thimble_depthwise_conv_s8"
    assert walked.get("shape.transposed") == 1 and plain.find("shape.transposed") is None
    assert [walked[f"shape.input_{side}"] for side in "hw"] == [2, 12]
    assert said in _text(column) and said not in _text(row)


def test_gaps_between_lines_become_a_loop_of_a_pointwise_convolution() -> None:
    """Its pixels are one run otherwise."""
    shape = {"kind": "conv2d", "input": [1, 4, 6, 8], "channels": 3, "kernel": [1, 1]}
    kernel = _kernel(graph_of_shape(shape))
    (dense,), (lined,) = kernel.calls, kernel.calls_at(64, 0)
    assert dense.function == lined.function == "thimble_convolve_1x1_s8"
    assert (dense["pixels"], dense.loops) == (24, ())
    assert lined["pixels"] == 6 and [loop.count for loop in lined.loops] == [4]
    steps = [lined.arguments[name].steps for name in ("input", "output")]  # type: ignore[union-attr]
    assert steps == [(("y", 64),), (("y", 18),)]


@pytest.mark.parametrize(
    ("height", "rows", "core", "by_lines"),
    [
        (4, 7, M4, False),
        (4, 8, M4, True),
        (7, 9, M4, False),
        (7, 10, M4, True),
        (9, 8, M4, True),
        (7, 8, Core("cortex-m3"), True),  # whose blocks are no quicker for having odd rows
    ],
)
def test_columns_take_the_kernel_of_fewer_cycles(
    height: int, rows: int, core: Core, by_lines: bool
) -> None:
    size = [1, height + rows - 1, 1, 8]
    graph = graph_of_shape({"kind": "depthwise_conv2d", "input": size, "kernel": [height, 1]})
    call = kernel_of(graph.ops[0], graph, core).calls[0]
    assert call["shape.output_h" if not by_lines else "shape.output_w"] == rows
    names = {False: "thimble_depthwise_conv_blocks_s8", True: "thimble_depthwise_conv_s8"}
    assert call.function == names[by_lines]


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "first", "quickest"),
    [
        ((10, 10), 5, 1, "thimble_depthwise_conv_blocks_s8", "thimble_depthwise_conv_s8"),
        ((28, 28), 5, 2, "thimble_depthwise_conv_s8", "thimble_depthwise_conv_s8"),
        ((7, 7), 7, 1, "thimble_depthwise_conv_blocks_s8", "thimble_depthwise_conv_blocks_s8"),
    ],
)
def test_wide_windows_go_row_by_row_where_there_is_room(
    size: tuple[int, int], kernel: int, stride: int, first: str, quickest: str
) -> None:
    """A window that is as large as the image has too few outputs for that."""
    shape = {"kind": "depthwise_conv2d", "input": [1, *size, 8], "kernel": [kernel, kernel]}
    padding = "valid" if size[0] == kernel else "same"
    graph = graph_of_shape({**shape, "stride": [stride, stride], "padding": padding})
    made = kernel_of(graph.ops[0], graph, M4)
    forms = made.more_scratch()
    assert made.functions == (first,)
    assert (forms[0] if forms else made).functions == (quickest,)
    assert [form.scratch_bytes for form in forms] == sorted(
        (form.scratch_bytes for form in forms), reverse=True
    )
    assert all(form.scratch_bytes > made.scratch_bytes for form in forms)

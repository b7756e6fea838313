"""The arithmetic of Winograd's convolutions in NumPy, and what the kernel is chosen for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tests.support.winograd import all_by, convolution
from toolchain.boards import HOST
from toolchain.ir import Graph, Quantisation
from toolchain.ops import kernel_of
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.kernels.thimble_convolve_winograd_s8 import (
    FORMS,
)
from toolchain.ops.convolution.kernels.thimble_convolve_winograd_s8 import (
    kernel as winograd_conv2d,
)
from toolchain.ops.lowering import lower
from toolchain.ops.operator import operator_of
from toolchain.ops.weighted import constant_of
from toolchain.ops.window import Padding

Int64 = NDArray[np.int64]
TILES = tuple(FORMS)
ANY = st.one_of(st.integers(-128, 127), st.sampled_from((-128, 127)))

_B_2 = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])


def _outputs_2(p: Sequence[int]) -> list[int]:
    """As `thimble_winograd_block_s8` adds them."""
    c0, c1, c2 = 2 * p[7] - p[6] - p[8], 2 * p[1] - p[2], 2 * p[4] - p[3] - p[5]
    c3 = 2 * p[10] - p[9] - p[11]
    return [
        p[9],
        2 * p[3] - p[6] + p[12] - p[9],
        c1 + c2 + c0 + p[15] - p[12],
        c1 - c2 + c3 + 2 * p[13] - p[12] - p[14] + p[16] - p[15],
    ]


_B_4 = np.array(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ]
)
_A_4 = np.array(
    [[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 2]]
)


def _outputs_4(p: Sequence[int]) -> list[int]:
    """The sum before the first position counts as 0: the bias is then in every output."""
    parts = np.diff(np.array([0, *p[1:]], dtype=object))
    m = np.zeros((6, 6), dtype=object)
    for at, part in zip(FORMS[4].positions, parts, strict=True):
        m[at] = part
    return list((_A_4.astype(object) @ m @ _A_4.T.astype(object)).reshape(-1))


B: Mapping[int, Int64] = {2: _B_2, 4: _B_4}
OUTPUTS: Mapping[int, Callable[[Sequence[int]], list[int]]] = {2: _outputs_2, 4: _outputs_4}


def _plain(pixels: Int64, filters: Int64) -> Int64:
    side = pixels.shape[0] - 2
    sums = np.zeros((side, side), np.int64)
    for row in range(3):
        for column in range(3):
            seen = pixels[row : row + side, column : column + side]
            sums += (seen * filters[row, column]).sum(axis=-1)
    return sums


@pytest.mark.parametrize("tile", TILES)
@given(data=st.data())
def test_outputs_are_exact_in_32_bits(tile: int, data: st.DataObject) -> None:
    """As the kernel adds: one sum that goes on from position to position, modulo 2**32."""
    form, b = FORMS[tile], B[tile]
    pixels = data.draw(arrays(np.int64, (form.side, form.side, 8), elements=ANY))
    filters = data.draw(arrays(np.int64, (3, 3, 8), elements=ANY))
    bias = data.draw(st.integers(-(2**24), 2**24))
    u = form.transformed(filters[None].astype(np.int8))[:, 0].astype(np.int64)
    v = np.einsum("ai,ijc,bj->abc", b, pixels, b)
    sums = [form.scale * bias]
    for at, taps in zip(form.positions, u, strict=True):
        sums.append(int((sums[-1] + (v[at] * taps).sum()) % 2**32))
    wanted = form.scale * (_plain(pixels, filters) + bias) % 2**32
    assert [value % 2**32 for value in OUTPUTS[tile](sums)] == wanted.reshape(-1).tolist()


@pytest.mark.parametrize("tile", TILES)
def test_factors_fit_16_bits_whatever_the_weights_and_pixels(tile: int) -> None:
    form, b = FORMS[tile], B[tile]
    u = np.einsum("ai,bj->abij", np.abs(form.g), np.abs(form.g)).sum(axis=(2, 3))
    v = np.einsum("ai,bj->abij", np.abs(b), np.abs(b)).sum(axis=(2, 3))
    assert 128 * u.max() < 2**15
    assert 128 * v.max() < 2**15
    assert sorted(form.positions) == [(i, j) for i in range(form.side) for j in range(form.side)]


def _graph() -> Graph:
    return convolution((6, 5), 16, 4, np.random.default_rng(3), padding=Padding(1, 1, 1, 1))


def _changed(**changes: object) -> Graph:
    graph = _graph()
    attributes = graph.ops[0].attributes
    assert isinstance(attributes, Conv2D)
    op = replace(graph.ops[0], attributes=replace(attributes, **changes))
    return replace(graph, ops=(op,))


@pytest.mark.parametrize("tile", TILES)
def test_it_is_taken_where_it_applies_and_is_asked_for(tile: int) -> None:
    graph, form = _graph(), FORMS[tile]
    op = graph.ops[0]
    assert kernel_of(op, graph, HOST).functions == ("thimble_convolve_s8",)
    (kernel,) = lower(graph, HOST, forms=all_by(graph, tile)).kernels
    assert kernel.functions == (form.function,)
    assert kernel.constant_bytes == form.flash_bytes(16, 4)
    shape = graph.tensors["y"].shape
    assert kernel.scratch_bytes == form.scratch_bytes(16, shape, 2)
    assert [k.scratch_bytes for k in kernel.more_scratch()] in (
        [],
        [form.scratch_bytes(16, shape, 3)],
    )
    onnx = _changed(rounding=Rounding.ONNX)
    assert winograd_conv2d(operator_of(onnx.ops[0], onnx), tile) is not None
    for other in (_changed(stride=(2, 2)), _changed(dilation=(2, 1))):
        assert winograd_conv2d(operator_of(other.ops[0], other), tile) is None
    rng = np.random.default_rng(3)
    for depth, channels in ((12, 4), (16, 3)):
        other = convolution((6, 5), depth, channels, rng)
        assert winograd_conv2d(operator_of(other.ops[0], other), tile) is None


@pytest.mark.parametrize("tile", TILES)
def test_sums_that_would_overrun_are_left_to_other_kernels(tile: int) -> None:
    graph, limit = _graph(), 2**31 // FORMS[tile].kept
    bias = graph.tensors["bias"]
    for value, taken in ((limit - 2**23, True), (limit, False)):
        data = constant_of(bias).copy()
        data[1] = value
        changed = Graph.build(
            graph.name,
            [
                replace(bias, constant=data) if t.name == "bias" else t
                for t in graph.tensors.values()
            ],
            graph.ops,
            graph.inputs,
            graph.outputs,
        )
        assert (winograd_conv2d(operator_of(changed.ops[0], changed), tile) is not None) == taken


@pytest.mark.parametrize("tile", TILES)
def test_channels_without_a_fast_form_are_left_to_other_kernels(tile: int) -> None:
    graph = _graph()
    y = graph.tensors["y"]
    fine = replace(y, quantisation=Quantisation((y.q.scale / 2**14,), y.q.zero_points))
    changed = Graph.build(
        graph.name,
        [fine if t.name == "y" else t for t in graph.tensors.values()],
        graph.ops,
        graph.inputs,
        graph.outputs,
    )
    assert winograd_conv2d(operator_of(changed.ops[0], changed), tile) is None

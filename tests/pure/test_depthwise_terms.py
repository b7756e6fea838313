"""How often the loops of depthwise 3x3 kernels turn, against counts by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops import kernel_of
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.kernel import Kernel, Terms
from toolchain.ops.window import Padding

M4 = Core("cortex-m4", dsp=True, fpu=True)
SLOW, USUAL = 1.6, 0.01


def _graph(scales: tuple[float, ...], size: tuple[int, int], activation: Activation) -> Graph:
    channels = len(scales)
    weights = np.arange(9 * channels, dtype=np.int8).reshape(1, 3, 3, channels)
    q = Quantisation(scales, (0,) * channels, 3)
    tensors = [
        Tensor("x", (1, *size, channels), DType.INT8, Quantisation((0.05,), (3,))),
        Tensor("w", weights.shape, DType.INT8, q, weights),
        Tensor("y", (1, *size, channels), DType.INT8, Quantisation((0.025,), (-128,))),
    ]
    attributes = DepthwiseConv2D((1, 1), (1, 1), Padding(1, 1, 1, 1), activation)
    op = Op("depthwise_conv2d", "op", ("x", "w"), ("y",), attributes)
    return Graph.build("g", tensors, [op], ["x"], ["y"])


def _form(graph: Graph, ending: str) -> Kernel:
    kernel = kernel_of(graph.ops[0], graph, M4)
    return next(form for form in kernel.forms() if form.title.endswith(ending))


def _of(graph: Graph, ending: str) -> Terms:
    found = _form(graph, ending).terms
    assert found is not None
    return {name: count for name, count in found.items() if count}


def test_bands_of_lines_of_four_channels() -> None:
    """Five rows of nine pixels in bands of two rows, eight channels, of which one ends slowly.

    A band takes four lines: the second and the third keep two of them, and the third, of one row,
    needs but three. The first line is above the image, the last is below it. Lines have eleven
    pixels from the second of a pair on: one, four pairs, none left.
    """
    graph = _graph((*[USUAL] * 7, SLOW), (5, 9), Activation.NONE)
    assert _of(graph, "2 rows of four channels") == {
        "call": 1,
        "channel": 8 * 3,
        "row": 7 * 5,
        "row of several fours": 7 * 5,
        "first blank": 4 * 16,
        "band": 2 * 3,
        "band of several lines": 2 * 2,
        "channel of several rows": 8 * 2,
        "begun band": 2 * 3,
        "four words blank": 2 * 2 * 16,
        "four words kept": 2 * 4 * 16,
        "line of four channels": 2 * 5,
        "line of several pairs": 2 * 5,
        "first pixel of four channels": 2 * 5,
        "pair of pixels of four channels": 2 * 5 * 4,
        "four": 7 * 5 * 2,
        "lone output": 7 * 5,
        "slow row": 5,
        "slow output": 5 * 9,
    }


def test_a_narrow_activation_costs_a_pass_over_the_image() -> None:
    graph = _graph((USUAL,) * 6, (4, 6), Activation.NONE)
    (op,) = graph.ops
    narrow = _graph((USUAL,) * 6, (4, 6), Activation.RELU_N1_TO_1)
    kernel = kernel_of(op, graph, M4)
    wide = _of(graph, kernel.title)
    assert _of(narrow, kernel.title) == {**wide, "narrow four": 4 * 6 * 6 / 4}


@pytest.mark.parametrize("offset", (-128, 5))
def test_parameters_do_not_depend_on_the_activation(offset: int) -> None:
    packed = []
    for activation in (Activation.NONE, Activation.RELU6):
        graph = _graph((USUAL,) * 6, (4, 6), activation)
        y = replace(graph.tensors["y"], quantisation=Quantisation((0.025,), (offset,)))
        graph = replace(graph, tensors={**graph.tensors, "y": y})
        packed.append(kernel_of(graph.ops[0], graph, M4).constants[0].data)
    np.testing.assert_array_equal(*packed)

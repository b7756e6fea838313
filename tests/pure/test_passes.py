"""Each pass: what it rewrites, what it leaves alone, and that the results stay the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.graph_builder import QUANTISATION, Builder
from toolchain.frontends import load_model
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ir.boundary import End
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.check import check
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.convolution.depthwise_conv2d import DepthwiseConv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.interpret import interpret
from toolchain.ops.movement.batch_blocks import BatchBlocks
from toolchain.ops.movement.pad import Pad
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.slice import Slice
from toolchain.ops.movement.transpose import Transpose
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.unary.dequantize import SPEC as DEQUANTIZE
from toolchain.ops.unary.quantize import Quantize
from toolchain.ops.unary.relu import Bounds, Relu
from toolchain.ops.window import UNPADDED, Padding
from toolchain.passes import Prepared, prepare

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
IMAGE = ((0, 0), (1, 2), (2, 1), (0, 0))


def kinds(graph: Graph) -> Counter[str]:
    return Counter(op.kind for op in graph.ops)


def prepared_equal(graph: Graph, seeds: int = 3) -> Prepared:
    """The prepared graph, after checking that its outputs equal those of the graph as it was."""
    result = prepare(check(graph))
    after = result.graph
    assert after.inputs == graph.inputs
    assert after.outputs == graph.outputs
    boundaries = {boundary.tensor: boundary for boundary in result.boundaries}
    ends = {n: End(after.tensors[n], boundaries.get(n)) for n in (*graph.inputs, *graph.outputs)}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        values = [ends[name].random(rng) for name in graph.inputs]
        inner = [ends[n].to_graph(v) for n, v in zip(graph.inputs, values, strict=True)]
        expected, found = interpret(graph, values), interpret(after, inner)
        for name, want, have in zip(graph.outputs, expected, found, strict=True):
            got = ends[name].to_model(have)
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
    return result


def test_float_ends_become_int8() -> None:
    build = Builder()
    x = build.input((1, 5), DType.FLOAT32, None)
    y = build.op("relu", [build.op("quantize", [x], Quantize())], Relu())
    z = build.op("dequantize", [y], DEQUANTIZE.attributes(), None, DType.FLOAT32)
    result = prepared_equal(build.graph([z]))
    assert kinds(result.graph) == {"relu": 1}
    assert [(b.tensor, b.dtype) for b in result.boundaries] == [
        (x, DType.FLOAT32),
        (z, DType.FLOAT32),
    ]


def test_uint8_ends_become_int8_where_only_the_top_bit_differs() -> None:
    build = Builder()
    outer = Quantisation(QUANTISATION.scales, (QUANTISATION.zero_point + 128,))
    x = build.input((1, 5), DType.UINT8, outer)
    y = build.op("relu", [build.op("quantize", [x], Quantize())], Relu())
    z = build.op("quantize", [y], Quantize(DType.UINT8), outer, DType.UINT8)
    result = prepared_equal(build.graph([z]))
    assert kinds(result.graph) == {"relu": 1}
    assert [b.quantisation for b in result.boundaries] == [outer, outer]


def test_uint8_input_of_another_scale_keeps_its_operator() -> None:
    build = Builder()
    x = build.input((1, 5), DType.UINT8, Quantisation((0.5,), (0,)))
    y = build.op("relu", [build.op("quantize", [x], Quantize())], Relu())
    result = prepared_equal(build.graph([y]))
    assert kinds(result.graph) == {"quantize": 1, "relu": 1}
    assert result.boundaries == ()


def test_input_quantised_in_two_ways_keeps_its_operators() -> None:
    build = Builder()
    x = build.input((1, 5), DType.FLOAT32, None)
    a = build.op("quantize", [x], Quantize())
    b = build.op("quantize", [x], Quantize(), Quantisation((0.5,), (0,)))
    result = prepared_equal(build.graph([build.op("add", [a, b], Sum())]))
    assert kinds(result.graph)["quantize"] == 2


def test_input_quantised_twice_alike_is_one_int8_input() -> None:
    build = Builder()
    x = build.input((1, 5), DType.FLOAT32, None)
    a, b = (build.op("quantize", [x], Quantize()) for _ in range(2))
    result = prepared_equal(build.graph([build.op("add", [a, b], Sum())]))
    assert kinds(result.graph) == {"add": 1}


def test_a_model_that_only_dequantises_keeps_its_operator() -> None:
    build = Builder()
    x = build.input((1, 5))
    y = build.op("dequantize", [x], DEQUANTIZE.attributes(), None, DType.FLOAT32)
    assert kinds(prepared_equal(build.graph([y])).graph) == {"dequantize": 1}


def test_conversions_move_past_moves_of_data() -> None:
    build = Builder()
    x = build.input((1, 3, 4, 5), DType.FLOAT32, None)
    moved = build.op("transpose", [x], Transpose((0, 2, 3, 1)), None, DType.FLOAT32)
    y = build.op("relu", [build.op("quantize", [moved], Quantize())], Relu())
    wide = build.op("dequantize", [y], DEQUANTIZE.attributes(), None, DType.FLOAT32)
    turned = build.op("transpose", [wide], Transpose((0, 3, 1, 2)), None, DType.FLOAT32)
    z = build.op("reshape", [turned], Reshape((3, 20)), None, DType.FLOAT32)
    result = prepared_equal(build.graph([z]))
    assert [op.kind for op in result.graph.ops] == ["transpose", "relu", "transpose", "reshape"]
    assert all(t.dtype is DType.INT8 for t in result.graph.tensors.values())


def test_constant_operators_are_folded_and_dead_ones_removed() -> None:
    build = Builder()
    x = build.input((2, 3))
    weights = build.op("transpose", [build.constant((3, 2))], Transpose((1, 0)))
    build.op("relu", [x], Relu())
    y = build.op("add", [x, weights], Sum())
    result = prepared_equal(build.graph([y]))
    assert kinds(result.graph) == {"add": 1}
    assert result.graph.tensors[weights].is_constant


def test_what_constants_make_infinite_is_computed_at_run_time() -> None:
    """No constant holds NaN or infinity. LiteRT computes them, and so does the operator."""
    large = Tensor("c", (2,), DType.FLOAT32, None, np.array([100.0, 1.0], np.float32))
    others = [Tensor(name, (2,), DType.FLOAT32) for name in ("x", "grown", "y")]
    ops = [
        Op("exp", "grow", ("c",), ("grown",), Attributes()),
        Op("add", "last", ("x", "grown"), ("y",), Sum()),
    ]
    graph = Graph.build("large", [large, *others], ops, ["x"], ["y"])
    prepared = prepare(graph).graph
    assert [op.name for op in prepared.ops] == ["grow", "last"]
    x = [np.array([1.0, 2.0], np.float32)]
    np.testing.assert_array_equal(interpret(prepared, x)[0], interpret(graph, x)[0])


def test_identities_are_removed() -> None:
    build = Builder()
    x = build.input((1, 4, 4, 2))
    a = build.op("reshape", [x], Reshape((1, 4, 4, 2)))
    b = build.op("quantize", [a], Quantize())
    c = build.op("pad", [b], Pad(((0, 0),) * 4))
    d = build.op("transpose", [c], Transpose((0, 1, 2, 3)))
    y = build.op("relu", [d], Relu())
    result = prepared_equal(build.graph([y]))
    assert kinds(result.graph) == {"relu": 1}


def test_a_reversal_is_no_identity() -> None:
    build = Builder()
    x = build.input((1, 4, 3))
    a = build.op("slice", [x], Slice((0, 3, 0), (1, 4, 3), (1, -1, 1), (1, 4, 3)))
    b = build.op("slice", [a], Slice((0, 0, 0), (1, 4, 3), (1, 1, 1), (1, 4, 3)))
    y = build.op("relu", [b], Relu())
    assert kinds(prepared_equal(build.graph([y])).graph) == {"slice": 1, "relu": 1}


def test_identities_before_an_output_hand_on_their_name() -> None:
    build = Builder()
    x = build.input((1, 4))
    y = build.op("quantize", [build.op("relu", [x], Relu())], Quantize())
    result = prepared_equal(build.graph([y]))
    assert kinds(result.graph) == {"relu": 1}
    assert result.graph.ops[0].outputs == (y,)


def test_two_outputs_that_are_the_same_bytes_stay_two() -> None:
    build = Builder()
    x = build.input((1, 4))
    y = build.op("relu", [x], Relu())
    z = build.op("quantize", [y], Quantize())
    result = prepared_equal(build.graph([y, z]))
    assert kinds(result.graph) == {"relu": 1, "quantize": 1}


def test_requantisation_to_other_parameters_stays() -> None:
    build = Builder()
    x = build.input((1, 4))
    y = build.op("quantize", [x], Quantize(), Quantisation((0.07,), (-3,)))
    assert kinds(prepared_equal(build.graph([build.op("relu", [y], Relu())])).graph)["quantize"]


def test_transpose_of_unit_dimensions_becomes_a_reshape() -> None:
    build = Builder()
    x = build.input((1, 1, 5, 3))
    y = build.op("transpose", [x], Transpose((2, 0, 3, 1)))
    result = prepared_equal(build.graph([build.op("relu", [y], Relu())]))
    assert kinds(result.graph) == {"reshape": 1, "relu": 1}


def test_transpose_that_moves_data_stays() -> None:
    build = Builder()
    x = build.input((1, 4, 5, 3))
    y = build.op("transpose", [x], Transpose((0, 2, 1, 3)))
    assert kinds(prepared_equal(build.graph([y])).graph) == {"transpose": 1}


def test_reshapes_of_reshapes_merge() -> None:
    build = Builder()
    x = build.op("relu", [build.input((1, 4, 6))], Relu())
    y = build.op("reshape", [build.op("reshape", [x], Reshape((24,)))], Reshape((2, 12)))
    result = prepared_equal(build.graph([y]))
    assert kinds(result.graph) == {"relu": 1, "reshape": 1}


def test_pad_merges_into_convolutions() -> None:
    build = Builder()
    padded = build.op("pad", [build.input((1, 6, 7, 3))], Pad(IMAGE))
    a = build.conv(padded, 3, 4, Conv2D((2, 1)))
    b = build.conv(padded, 2, 4, Conv2D(padding=Padding(1, 0, 0, 1)))
    result = prepared_equal(build.graph([a, b]))
    assert kinds(result.graph) == {"conv2d": 2}
    paddings = [op.attributes.padding for op in result.graph.ops]  # type: ignore[attr-defined]
    assert paddings == [Padding(1, 2, 2, 1), Padding(2, 2, 2, 2)]


@pytest.mark.parametrize(
    ("paddings", "value"),
    [
        (IMAGE, 5),
        (((0, 0), (1, 1), (1, 1), (0, 2)), None),
        (((1, 0), (1, 1), (1, 1), (0, 0)), None),
    ],
)
def test_pad_that_a_convolution_cannot_express_stays(
    paddings: tuple[tuple[int, int], ...], value: int | None
) -> None:
    build = Builder()
    padded = build.op("pad", [build.input((1, 6, 7, 3))], Pad(paddings, value))
    result = prepared_equal(build.graph([build.conv(padded, 3, 4, Conv2D())]))
    assert kinds(result.graph) == {"pad": 1, "conv2d": 1}


def test_pad_that_changes_the_quantisation_stays() -> None:
    build = Builder()
    other = Quantisation((0.5,), (-3,))
    padded = build.op("pad", [build.input((1, 6, 7, 3), quantisation=other)], Pad(IMAGE))
    result = prepared_equal(build.graph([build.conv(padded, 3, 4, Conv2D())]))
    assert kinds(result.graph) == {"pad": 1, "conv2d": 1}


def test_pad_with_another_reader_stays() -> None:
    build = Builder()
    padded = build.op("pad", [build.input((1, 6, 7, 3))], Pad(IMAGE))
    outputs = [build.conv(padded, 3, 4, Conv2D()), build.op("relu", [padded], Relu())]
    assert kinds(prepared_equal(build.graph(outputs)).graph)["pad"] == 1


@pytest.mark.parametrize(("value", "pads"), [(-128, 0), (-3, 1), (None, 1)])
def test_pad_merges_into_max_pool_only_with_the_smallest_value(
    value: int | None, pads: int
) -> None:
    build = Builder()
    padded = build.op("pad", [build.input((1, 6, 7, 3))], Pad(IMAGE, value))
    y = build.op("max_pool2d", [padded], Pool2D(3, 3, 2, 2))
    assert kinds(prepared_equal(build.graph([y])).graph)["pad"] == pads


LOWEST_FLOAT = float(np.finfo(np.float32).min)


@pytest.mark.parametrize(
    ("dtype", "value", "pads"),
    [
        (DType.INT16, -32768, 0),
        (DType.INT16, -128, 1),
        (DType.INT16, 0, 1),
        (DType.INT16, None, 1),
        (DType.FLOAT32, LOWEST_FLOAT, 0),
        (DType.FLOAT32, -32768.0, 1),
        (DType.FLOAT32, None, 1),
    ],
)
def test_the_smallest_value_is_that_of_the_pools_type(
    dtype: DType, value: float | None, pads: int
) -> None:
    q = None if dtype is DType.FLOAT32 else Quantisation((0.0625,), (0,))
    build = Builder()
    padded = build.op("pad", [build.input((1, 6, 7, 3), dtype, q)], Pad(IMAGE, value), q, dtype)
    y = build.op("max_pool2d", [padded], Pool2D(3, 3, 2, 2), q, dtype)
    result = prepared_equal(build.graph([y]))
    assert kinds(result.graph) == Counter({"max_pool2d": 1, **({"pad": 1} if pads else {})})
    (pool,) = (op for op in result.graph.ops if op.kind == "max_pool2d")
    assert isinstance(pool.attributes, Pool2D)
    assert pool.attributes.padding == (UNPADDED if pads else Padding(1, 2, 2, 1))


def test_a_pad_of_int16_stays_before_an_average() -> None:
    q = Quantisation((0.0625,), (0,))
    build = Builder()
    given = build.input((1, 6, 7, 3), DType.INT16, q)
    padded = build.op("pad", [given], Pad(IMAGE, -32768), q, DType.INT16)
    y = build.op("average_pool2d", [padded], Pool2D(3, 3, 2, 2), q, DType.INT16)
    assert kinds(prepared_equal(build.graph([y])).graph)["pad"] == 1


LOWEST = ((DType.INT8, -128), (DType.INT16, -32768), (DType.FLOAT32, LOWEST_FLOAT))


@pytest.mark.parametrize(("dtype", "value"), LOWEST)
def test_pad_that_a_pool_window_would_cover_alone_stays(dtype: DType, value: float) -> None:
    q = None if dtype is DType.FLOAT32 else Quantisation((0.0625,), (0,))
    build = Builder()
    wide = ((0, 0), (3, 0), (0, 0), (0, 0))
    padded = build.op("pad", [build.input((1, 6, 6, 3), dtype, q)], Pad(wide, value), q, dtype)
    y = build.op("max_pool2d", [padded], Pool2D(2, 2, 1, 1), q, dtype)
    assert kinds(prepared_equal(build.graph([y])).graph)["pad"] == 1


@pytest.mark.parametrize("bounds", [Bounds.RELU, Bounds.RELU6, Bounds.RELU_N1_TO_1])
def test_relu_merges_into_the_operator_before_it(bounds: Bounds) -> None:
    build = Builder()
    y = build.op("relu", [build.conv(build.input((1, 6, 7, 3)), 3, 4, Conv2D())], Relu(bounds))
    result = prepared_equal(build.graph([y]))
    assert kinds(result.graph) == {"conv2d": 1}
    (op,) = result.graph.ops
    assert op.attributes == Conv2D(activation=Activation[bounds.value])


def test_relu_that_requantises_stays() -> None:
    build = Builder()
    conv = build.conv(build.input((1, 6, 7, 3)), 3, 4, Conv2D())
    y = build.op("relu", [conv], Relu(), Quantisation((0.03,), (-128,)))
    assert kinds(prepared_equal(build.graph([y])).graph) == {"conv2d": 1, "relu": 1}


def test_relu_of_a_result_that_others_read_stays() -> None:
    build = Builder()
    conv = build.conv(build.input((1, 6, 7, 3)), 3, 4, Conv2D())
    y = build.op("add", [build.op("relu", [conv], Relu()), conv], Sum())
    assert kinds(prepared_equal(build.graph([y])).graph)["relu"] == 1


def test_relu_of_an_operator_that_clamps_already_stays() -> None:
    build = Builder()
    conv = build.conv(build.input((1, 6, 7, 3)), 3, 4, Conv2D(activation=Activation.RELU6))
    y = build.op("relu", [conv], Relu(Bounds.RELU_N1_TO_1))
    assert kinds(prepared_equal(build.graph([y])).graph)["relu"] == 1


def test_the_digits_model_stays_the_same() -> None:
    prepared_equal(load_model(DIGITS))


def test_preparing_twice_changes_nothing_more() -> None:
    once = prepare(load_model(DIGITS)).graph
    again = prepare(once).graph
    assert once.ops == again.ops
    assert tuple(once.tensors) == tuple(again.tensors)


WEIGHTS_Q = Quantisation((0.01,), (0,))


@pytest.mark.parametrize("seed", range(12))
def test_convolution_between_batch_blocks_is_dilated(seed: int) -> None:
    """SAME and VALID as converters write them, and padding of the convolution's own."""
    rng = np.random.default_rng(seed)
    build = Builder()
    block = (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
    own = Padding(1, 0, 0, 1) if seed % 3 == 0 else Padding()
    sizes, ends, crops = [], [], []
    for side in block:
        before, extra = int(rng.integers(0, 4)), int(rng.integers(0, side))
        after = int(rng.integers(0, 4)) + extra
        sizes.append(side * int(rng.integers(4, 7)) + (-before - after) % side)
        ends.append((before, after))
        crops.append((0, extra))
    x = build.input((2, *sizes, 3))
    spread = build.op("space_to_batch", [x], BatchBlocks(block, tuple(ends)))
    if seed % 2:
        weights = build.constant((4, 3, 2, 3), quantisation=WEIGHTS_Q)
        y = build.op("conv2d", [spread, weights], Conv2D(padding=own))
    else:
        weights = build.constant((1, 3, 2, 3), quantisation=WEIGHTS_Q)
        y = build.op("depthwise_conv2d", [spread, weights], DepthwiseConv2D(padding=own))
    gathered = build.op("batch_to_space", [y], BatchBlocks(block, tuple(crops)))
    result = prepared_equal(build.graph([gathered])).graph
    assert [op.kind for op in result.ops] == ["conv2d" if seed % 2 else "depthwise_conv2d"]
    attributes = result.ops[0].attributes
    assert isinstance(attributes, Conv2D | DepthwiseConv2D)
    assert attributes.dilation == block


@pytest.mark.parametrize("line", [1, 2])
def test_one_dimensional_dilation_keeps_its_reshapes(line: int) -> None:
    build = Builder()
    x = build.input((1, 10, 3))
    spread = build.op("space_to_batch", [x], BatchBlocks((4,), ((4, 6),)))
    image, kernel = ((4, 1, 5, 3), (1, 2)) if line == 1 else ((4, 5, 1, 3), (2, 1))
    weights = build.constant((2, *kernel, 3), quantisation=WEIGHTS_Q)
    y = build.op("reshape", [spread], Reshape(image))
    y = build.op("conv2d", [y, weights], Conv2D())
    y = build.op("reshape", [y], Reshape((4, 4, 2)))
    y = build.op("batch_to_space", [y], BatchBlocks((4,), ((0, 6),)))
    result = prepared_equal(build.graph([y])).graph
    assert [op.kind for op in result.ops] == ["reshape", "conv2d", "reshape"]


def test_batch_blocks_that_are_no_dilation_stay() -> None:
    build = Builder()
    x = build.input((1, 8, 8, 3))
    spread = build.op("space_to_batch", [x], BatchBlocks((2, 2), ((0, 0), (0, 0))))
    weights = build.constant((4, 1, 1, 3), quantisation=WEIGHTS_Q)
    y = build.op("conv2d", [spread, weights], Conv2D())
    whole = build.op("batch_to_space", [y], BatchBlocks((2, 2), ((1, 0), (0, 0))))
    assert "batch_to_space" in kinds(prepared_equal(build.graph([whole])).graph)
    assert "batch_to_space" in kinds(prepared_equal(build.graph([whole, y])).graph)

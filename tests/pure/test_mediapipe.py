"""MediaPipe's custom operators against their sources in NumPy, a pixel at a time
(transpose_conv_bias.cc, max_pool_argmax.cc, max_unpooling.cc)."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import numpy as np
import pytest

from tests.support.tflite_subgraphs import File
from toolchain import verify_model
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.planning.options import PlanOptions

SAME, VALID = 1, 2
NAME = "Convolution2DTransposeBias"


def kernel(x: Array, weights: Array, bias: Array, stride: tuple[int, int], padding: int) -> Array:
    """The published loops, a pixel at a time: the bias first, then each pixel's products."""
    (batches, height, width, _), (channels, rows, columns, _) = x.shape, weights.shape
    pads = [
        max(0, taps - (size - 1) % step - 1) if padding == SAME else 0
        for size, taps, step in zip((height, width), (rows, columns), stride, strict=True)
    ]
    out_h, out_w = (
        step * (size - 1) + taps - pad
        for size, taps, step, pad in zip(
            (height, width), (rows, columns), stride, pads, strict=True
        )
    )
    y = np.broadcast_to(bias, (batches, out_h, out_w, channels)).astype(np.float32)
    for batch, in_y, in_x in np.ndindex(batches, height, width):
        for row, column in np.ndindex(rows, columns):
            out_y = in_y * stride[0] - pads[0] // 2 + row
            out_x = in_x * stride[1] - pads[1] // 2 + column
            if 0 <= out_y < out_h and 0 <= out_x < out_w:
                for value, taps in zip(
                    x[batch, in_y, in_x], weights[:, row, column].T, strict=True
                ):
                    y[batch, out_y, out_x] += value * taps
    return y


def file(x: Array, weights: Array, bias: Array, shape: tuple[int, ...], options: bytes) -> bytes:
    """A file of the operator alone."""
    made = File()
    main = made.subgraph()
    given = main.tensor(x.shape, x.dtype.name)
    constants = [main.constant(value, value.dtype.name) for value in (weights, bias)]
    y = main.tensor(shape)
    main.inputs.append(given)
    main.outputs.append(y)
    main.op("CUSTOM", [given, *constants], [y])
    made.model.operatorCodes[-1].customCode = NAME
    main.written.operators[-1].customOptions = np.frombuffer(options, np.uint8)
    return made.data()


def drawn(rng: np.random.Generator, dtype: str = "float32") -> tuple[Array, Array, Array]:
    x = rng.standard_normal((2, 4, 5, 3)).astype(dtype)
    rows, columns = rng.integers(1, 5, 2)
    weights = rng.standard_normal((2, rows, columns, 3)).astype(np.float32)
    return x, weights, rng.standard_normal(2).astype(np.float32)


@pytest.mark.parametrize("padding", [SAME, VALID])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 2)])
def test_the_published_kernel(padding: int, stride: tuple[int, int]) -> None:
    """Equal where there is no bias; with one, which is added first, as near as its rounding."""
    rng = np.random.default_rng([padding, *stride])
    for _ in range(3):
        x, weights, bias = drawn(rng)
        wanted = kernel(x, weights, bias, stride, padding)
        options = struct.pack("<3i", padding, stride[1], stride[0])
        for values in (bias, np.zeros_like(bias)):
            graph = FRONT_END.read(
                file(x, weights, values, wanted.shape, options), Path("m.tflite")
            )
            (got,) = interpret(graph, [x])
            wanted = kernel(x, weights, values, stride, padding)
            if values.any():
                np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-5)
            else:
                np.testing.assert_array_equal(got, wanted)


def pool(x: Array, rows: int, columns: int) -> tuple[Array, Array]:
    """The published loops of MaxPoolingWithArgmax2D: the first of equal elements wins."""
    batches, height, width, depth = x.shape
    shape = (batches, height // rows, width // columns, depth)
    y, places = np.empty(shape, np.float32), np.empty(shape, np.float32)
    for at in np.ndindex(shape):
        most, best = np.finfo(np.float32).min, 0
        for row, column in np.ndindex(rows, columns):
            value = x[at[0], at[1] * rows + row, at[2] * columns + column, at[3]]
            if value > most:
                most, best = value, row * columns + column
        y[at], places[at] = most, np.float32(best) + np.float32(0.1)
    return y, places


def unpool(x: Array, places: Array, rows: int, columns: int) -> Array:
    """The published loops of MaxUnpooling2D."""
    batches, height, width, depth = x.shape
    y = np.zeros((batches, height * rows, width * columns, depth), np.float32)
    for at in np.ndindex(x.shape):
        row, column = divmod(int(places[at]), columns)
        y[at[0], at[1] * rows + row, at[2] * columns + column, at[3]] = x[at]
    return y


def pair(shape: tuple[int, ...], rows: int, columns: int, options: bytes) -> File:
    """MaxPoolingWithArgmax2D, a NEG of the maxima, and MaxUnpooling2D of these."""
    small = (shape[0], shape[1] // rows, shape[2] // columns, shape[3])
    made = File()
    main = made.subgraph()
    x, y, places, less = main.tensor(shape), *(main.tensor(small) for _ in range(3))
    back = main.tensor((*small[:1], small[1] * rows, small[2] * columns, small[3]))
    main.inputs.append(x)
    main.outputs.extend((places, back))
    main.op("CUSTOM", [x], [y, places])
    main.op("NEG", [y], [less])
    main.op("CUSTOM", [less, places], [back])
    for index, name in ((0, "MaxPoolingWithArgmax2D"), (2, "MaxUnpooling2D")):
        made.model.operatorCodes[index].customCode = name
        main.written.operators[index].customOptions = np.frombuffer(options, np.uint8)
    return made


WIDE = (1, 6, 8, 3)


def wide_pair(rows: int, columns: int) -> bytes:
    options = struct.pack("<6i", SAME, columns, rows, columns, rows, 0)
    return pair(WIDE, rows, columns, options).data()


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (3, 2)])
def test_places_of_maxima_there_and_back(rows: int, columns: int) -> None:
    shape, rng, data = WIDE, np.random.default_rng(rows), wide_pair(rows, columns)
    graph = FRONT_END.read(data, Path("m.tflite"))
    for values in (rng.standard_normal(shape), rng.integers(-2, 3, shape)):
        x = values.astype(np.float32)
        y, places = pool(x, rows, columns)
        got = interpret(graph, [x])
        np.testing.assert_array_equal(got[0], places)
        np.testing.assert_array_equal(got[1], unpool(-y, places, rows, columns))


def test_c_that_finds_places_and_puts_values_back(tmp_path: Path) -> None:
    (tmp_path / "pair.tflite").write_bytes(wide_pair(3, 2))
    wanted = PlanOptions(allow_float=True)
    result = verify_model(tmp_path / "pair.tflite", "host", runs=2, options=wanted)
    assert result.elements == 2 * math.prod(WIDE) * 7 // 6 and result.differing == 0


@pytest.mark.parametrize(
    ("walk", "said"),
    [
        ((SAME, 1, 1, 2, 2, 0), "windows overlap, or leave gaps; pool with a stride"),
        ((SAME, 2, 2, 2, 2, 1), "a fused activation"),
        ((SAME, 5, 5, 5, 5, 0), "windows of 5x5 do not fill 6x8"),
    ],
)
def test_windows_that_are_not_side_by_side(walk: tuple[int, ...], said: str) -> None:
    made = pair((1, 6, 8, 3), 2, 2, struct.pack("<6i", *walk))
    with pytest.raises(InputError, match=said):
        FRONT_END.read(made.data(), Path("m.tflite"))


def test_options_that_are_none() -> None:
    x, weights, bias = drawn(np.random.default_rng(0))
    for options, said in (
        (b"", "has no options"),
        (struct.pack("<3i", 0, 1, 1), "padding 0"),
        (struct.pack("<3i", SAME, 0, 1), "strides 1x0"),
    ):
        with pytest.raises(InputError, match=said):
            FRONT_END.read(file(x, weights, bias, (2, 4, 5, 2), options), Path("m.tflite"))


def test_other_types_than_the_kernel_takes() -> None:
    x, weights, bias = drawn(np.random.default_rng(0), "int32")
    options = struct.pack("<3i", SAME, 1, 1)
    with pytest.raises(UnsupportedError, match="int32, and MediaPipe's kernel takes float32"):
        FRONT_END.read(file(x, weights, bias, (2, 4, 5, 2), options), Path("m.tflite"))

"""MediaPipe's Convolution2DTransposeBias against its source (transpose_conv_bias.cc) in NumPy."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from tests.support.tflite_subgraphs import File
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array

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

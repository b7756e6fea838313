"""Moves of bytes, collapsed to the fewest loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.tflite_writer import tflite_bytes
from toolchain.errors import InputError, UnsupportedError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.movement.copies import Loop, StridedCopy, row_major, strided_copy


def transposition(shape: tuple[int, ...], axes: tuple[int, ...]) -> StridedCopy:
    strides = row_major(shape)
    out = [shape[axis] for axis in axes]
    (copy,) = strided_copy(out, [strides[axis] for axis in axes], row_major(out), 1)
    return copy


def test_a_whole_tensor_is_one_run() -> None:
    (copy,) = strided_copy((2, 3, 4), row_major((2, 3, 4)), row_major((2, 3, 4)), 4)
    assert (copy.loops, copy.run_bytes) == ((), 96)


def test_channels_last_is_two_loops_the_longer_inside() -> None:
    copy = transposition((1, 3, 224, 224), (0, 2, 3, 1))
    assert copy.loops == (Loop(3, 224 * 224, 1), Loop(224 * 224, 1, 3))
    assert copy.run_bytes == 1


def test_axes_that_stay_together_are_one() -> None:
    copy = transposition((2, 3, 4, 5), (1, 0, 2, 3))
    assert copy.run_bytes == 20
    assert sorted(loop.count for loop in copy.loops) == [2, 3]


def test_an_empty_block_is_no_copy() -> None:
    assert strided_copy((2, 0, 3), (3, 3, 1), (3, 3, 1), 1) == ()


def test_too_many_loops_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="8 nested loops, at most 6"):
        transposition((2,) * 8, tuple(reversed(range(8))))


def test_random_copies_do_what_numpy_does() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        shape = tuple(int(d) for d in rng.integers(1, 4, int(rng.integers(1, 6))))
        axes = tuple(int(a) for a in rng.permutation(len(shape)))
        copy = transposition(shape, axes)
        source = np.arange(np.prod(shape))
        target = np.full_like(source, -1)
        turns = np.ndindex(*(loop.count for loop in copy.loops))
        for turn in turns:
            pairs = list(zip(turn, copy.loops, strict=True))
            read = sum(i * loop.source_stride for i, loop in pairs)
            write = sum(i * loop.target_stride for i, loop in pairs)
            target[write : write + copy.run_bytes] = source[read : read + copy.run_bytes]
        expected = source.reshape(shape).transpose(axes).reshape(-1)
        np.testing.assert_array_equal(target, expected)


def gather_nd(rows: list[list[int]]) -> bytes:
    q, indices = Quantisation((0.5,), (3,)), np.array(rows, np.int32)
    tensors = [
        Tensor("x", (3, 4, 5), DType.INT8, q),
        Tensor("rows", indices.shape, DType.INT32, None, indices),
        Tensor("y", (len(rows), 5), DType.INT8, q),
    ]
    op = Op("gather_nd", "pick", ("x", "rows"), ("y",))
    return tflite_bytes(Graph.build("picks", tensors, [op], ["x"], ["y"]))


@pytest.mark.parametrize("row", [[3, 0], [0, -1]])
def test_coordinates_outside_of_the_data_are_refused(row: list[int]) -> None:
    with pytest.raises(InputError, match=r"GATHER_ND.*coordinates outside of \[3, 4\]"):
        FRONT_END.read(gather_nd([[0, 0], row]), Path("picks.tflite"))

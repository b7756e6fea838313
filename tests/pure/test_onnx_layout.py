"""Layouts say where data lie: checked against NumPy moving the data."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolchain.frontends.onnx.layout import Layout, channels_last, move


def in_memory(value: np.ndarray, layout: Layout) -> np.ndarray:
    """The flat memory of `value` under `layout`."""
    logical = [f for dim in layout.dims for f in dim]
    factored = value.reshape([layout.sizes[f] for f in logical])
    return factored.transpose([logical.index(f) for f in layout.order]).reshape(-1)


def test_channels_last() -> None:
    assert channels_last(4) == (0, 2, 3, 1)
    assert Layout.of((1, 3, 8, 8), channels_last(4)).axes() == (0, 2, 3, 1)
    assert Layout.of((1, 3, 8, 8)).axes() == (0, 1, 2, 3)


def test_a_single_pixel_lies_either_way() -> None:
    layout = Layout.of((1, 5, 1, 1), channels_last(4))
    assert layout.lies_as((0, 1, 2, 3)) and layout.lies_as((0, 2, 3, 1))


def test_flatten_keeps_the_memory() -> None:
    layout = Layout.of((1, 3, 4, 5), channels_last(4)).reshaped((1, 60))
    assert layout is not None and layout.axes() is None
    shape, permutation = move(layout, layout.order_of((0, 1)))
    assert (shape, permutation) == ((20, 3), (1, 0))


def test_a_reshape_across_a_transpose_must_move_data() -> None:
    assert Layout.of((2, 3), (1, 0)).reshaped((3, 2)) is None


@given(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=2, max_size=4), st.data())
def test_renaming_agrees_with_numpy(shape: list[int], data: st.DataObject) -> None:
    value = np.arange(math.prod(shape)).reshape(shape)
    layout = Layout.of(shape, data.draw(st.permutations(range(len(shape)))))
    memory = in_memory(value, layout)
    for _ in range(3):
        permutation = data.draw(st.permutations(range(value.ndim)))
        value, layout = value.transpose(permutation), layout.transposed(permutation)
        size, cut = value.size, data.draw(st.sampled_from([1, 2, 3, 4]))
        new_shape = (cut, size // cut) if size % cut == 0 else (size,)
        reshaped = layout.reshaped(new_shape)
        if reshaped is not None:
            value, layout = value.reshape(new_shape), reshaped
        assert layout.shape == value.shape
        assert (in_memory(value, layout) == memory).all()
        axes = layout.axes()
        if axes is not None:
            assert (value.transpose(axes).reshape(-1) == memory).all()
        target = layout.order_of(range(value.ndim))
        read_as, moves = move(layout, target)
        assert (memory.reshape(read_as).transpose(moves).reshape(-1) == value.reshape(-1)).all()

"""Axis maps that several operator kinds share.

An axis map says which indices of each input a block of the output needs. Rows 4 to 7 of a 3x3
convolution with stride 1, for example, need input rows 3 to 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from toolchain.ir import Attributes
from toolchain.ops.operator import AnyOperator
from toolchain.ops.spec import Axis, Part, Reach
from toolchain.ops.window import Padding, Window


def elementwise_axes(op: AnyOperator) -> tuple[Axis, ...]:
    """Every axis of the output. An operand that broadcasts along an axis is read whole."""
    y = op.y
    result = []
    for axis, size in enumerate(y.shape):
        reaches: list[Reach | None] = []
        for x in op.inputs:
            place = axis - (len(y.shape) - len(x.shape)) if x is not None else -1
            moves = x is not None and place >= 0 and x.shape[place] == size
            reaches.append(Reach(place) if moves else None)
        result.append(Axis(axis, tuple(reaches)))
    return tuple(result)


def leading_axes(op: AnyOperator) -> tuple[Axis, ...]:
    """Every axis but the last one, along which the operator reduces."""
    last = len(op.y.shape) - 1
    return tuple(axis for axis in elementwise_axes(op) if axis.axis != last)


def window_axes(
    op: AnyOperator, window: Window, padded: Callable[[Padding], Attributes]
) -> tuple[Axis, Axis]:
    """Rows and columns of a window that slides over NHWC images.

    Operands after the image, such as weights, are read whole. `padded` returns the operator's
    attributes with another padding, which a block away from the border needs.
    """
    pad, rest = window.padding, (None,) * (len(op.inputs) - 1)

    def rows(part: Part) -> Attributes:
        return padded(replace(pad, top=part.before, bottom=part.after))

    def columns(part: Part) -> Attributes:
        return padded(replace(pad, left=part.before, right=part.after))

    vertical = Reach(1, window.stride[0], window.extent[0], pad.top)
    horizontal = Reach(2, window.stride[1], window.extent[1], pad.left)
    return (
        Axis(1, (vertical, *rest), rows),
        Axis(2, (horizontal, *rest), columns),
    )


def resolve_axis(axis: int, rank: int) -> int:
    """The axis as an index from 0. Raises ValueError if it is out of range."""
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is out of range for {rank} dimensions")
    return axis % rank

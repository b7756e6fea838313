"""Where a model's own axes of an output lie in the tensor of the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.ir import DType, End
from toolchain.ops.detection.heads import BoxCoding, Scoring, View

Float32 = NDArray[np.float32]


@dataclass(frozen=True)
class Axis:
    """`size` indices, `step` elements apart."""

    size: int
    step: int


ONE = Axis(1, 0)


@dataclass(frozen=True)
class Output:
    """An output of the model, with the axes of its own file's shape."""

    end: End
    axes: tuple[Axis, ...]

    @property
    def name(self) -> str:
        return self.end.name

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    def __str__(self) -> str:
        return f"output {self.name!r} [{', '.join(map(str, self.end.model_shape))}]"

    def view(self, first: int, cells: Axis, anchors: Axis | None, channels: Axis) -> View:
        """`first` counts channels."""
        return View(
            first * channels.step,
            cells.step,
            anchors.step if anchors is not None else 0,
            channels.step,
        )


@dataclass(frozen=True, eq=False)
class MadeHead:
    """A head, with outputs and anchors in place of the operator's inputs; see `Head`."""

    boxes: Output
    scores: Output
    cells: int
    columns: int
    anchors: int
    box_view: View
    score_view: View
    sizes: Float32 | None = None


@dataclass(frozen=True)
class Bound:
    """A way of decoding for the outputs of one model; see `DecodeBoxes`."""

    heads: tuple[MadeHead, ...]
    coding: BoxCoding
    classes: int
    scoring: Scoring
    background: int = 0
    objectness: bool = False
    x_first: bool = True
    scales: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)


def outputs_of(ends: tuple[End, ...]) -> tuple[Output, ...]:
    """The model's outputs, each with its axes."""
    return tuple(Output(end, _axes(end)) for end in ends)


def _axes(end: End) -> tuple[Axis, ...]:
    shape = end.tensor.shape
    steps = [int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape))]
    permutation = end.boundary.permutation if end.boundary is not None else ()
    axes = [ONE] * len(shape)
    for axis, size, step in zip(permutation or range(len(shape)), shape, steps, strict=True):
        axes[axis] = Axis(size, step)
    return tuple(axes)


def check_type(output: Output, kind: str) -> None:
    """Check the element type of an output. Raises InputError where the kernel cannot read it."""
    dtype = output.end.tensor.dtype
    if dtype not in (DType.INT8, DType.FLOAT32):
        raise InputError(
            f"--decode {kind}: {output} holds {dtype.value}; heads are int8 or float32"
        )


def listed(
    output: Output, channels: int | None, kind: str, expected: str, places: int | None = None
) -> tuple[Axis, Axis]:
    """Axes of places and of channels of an output that is a list, in either order.

    The axis of `channels`, or that beside the one of `places`, is the last, or else the other.
    """
    check_type(output, kind)
    axes = output.axes[1:] if len(output.axes) > 2 and output.axes[0].size == 1 else output.axes
    while len(axes) > 2 and any(axis.size == 1 for axis in axes[:-1]):
        at = next(i for i, axis in enumerate(axes[:-1]) if axis.size == 1)
        axes = (*axes[:at], *axes[at + 1 :])
    if len(axes) == 2:
        first, last = axes
        if channels in (None, last.size) and places in (None, first.size):
            return first, last
        if channels in (None, first.size) and places in (None, last.size):
            return last, first
        if channels is None:
            return first, last
    raise InputError(f"--decode {kind}: {output} is no list; expected are {expected}")

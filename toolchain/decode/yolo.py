"""YOLO: grids of boxes relative to anchors (v3, v5, v7), or a list of boxes (v8, v11, and v5 whose
export decodes).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

import numpy as np

from toolchain.decode.common import Choosing
from toolchain.decode.layout import ONE, Axis, Bound, MadeHead, Output, check_type, listed
from toolchain.errors import InputError
from toolchain.ir import DType
from toolchain.ops.detection.heads import BoxCoding, Scoring

_SIDES = 4
_LIST = "[1, 4 + classes, boxes] or [1, boxes, 4 + classes]"
_LIST_WITH_OBJECTS = "[1, boxes, 5 + classes] or [1, 5 + classes, boxes]"
_PIXELS = 8.0
"""Coordinates that reach beyond this are no shares of the image."""


class Version(StrEnum):
    """The networks whose way of encoding is known."""

    V3 = "v3"
    V5 = "v5"
    V7 = "v7"
    V8 = "v8"
    V11 = "v11"


class Unit(StrEnum):
    """The unit of the boxes in a list."""

    PIXELS = "pixels"
    NORMALISED = "normalised"


class Scores(StrEnum):
    """The function that is still to be applied to the model's scores."""

    NONE = "none"
    SIGMOID = "sigmoid"


_LISTS = (Version.V8, Version.V11)
_FINE = (10.0, 13.0, 16.0, 30.0, 33.0, 23.0)
_MIDDLE = (30.0, 61.0, 62.0, 45.0, 59.0, 119.0)
_COARSE = (116.0, 90.0, 156.0, 198.0, 373.0, 326.0)
_TINY = ((10.0, 14.0, 23.0, 27.0, 37.0, 58.0), (81.0, 82.0, 135.0, 169.0, 344.0, 319.0))
_OF_V7 = (
    (12.0, 16.0, 19.0, 36.0, 40.0, 28.0),
    (36.0, 75.0, 76.0, 55.0, 72.0, 146.0),
    (142.0, 110.0, 192.0, 243.0, 459.0, 401.0),
)
_COCO: Mapping[tuple[Version, int], tuple[tuple[float, ...], ...]] = MappingProxyType(
    {
        (Version.V3, 2): _TINY,
        (Version.V3, 3): (_FINE, _MIDDLE, _COARSE),
        (Version.V5, 3): (_FINE, _MIDDLE, _COARSE),
        (Version.V7, 3): _OF_V7,
    }
)
"""The anchors that these networks were trained with on COCO, by version and number of heads."""


@dataclass(frozen=True)
class Yolo(Choosing):
    """Parameters of `--decode yolo`, beside thresholds.

    version    v3, v5 and v7 tell by a number of its own whether there is an object; v8 and v11 do
               not. By default v5 with anchors, v8 without.
    anchors    width and height in pixels, one after the other, of each head, from the finest grid
               on. By default, of several heads and a version that is given, those of COCO; one
               output without them is a list of boxes.
    classes    their number; by default what the shapes tell.
    unit       of a list's boxes; by default pixels, unless an integer output reaches no further
               than shares of the image do.
    scores     of a list: sigmoid if its scores are logits. Grids are always read as raw numbers.
    image      rows and columns of the input, where its shape does not tell.
    outputs    names of the heads; by default all outputs.
    """

    version: Version | None = None
    anchors: tuple[tuple[float, ...], ...] = ()
    classes: int = 0
    unit: Unit | None = None
    scores: Scores = Scores.NONE
    image: tuple[int, int] | None = None
    outputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the parameters. Raises InputError naming the wrong one."""
        super().__post_init__()
        for pairs in self.anchors:
            if not pairs or len(pairs) % 2 or min(pairs) <= 0:
                raise InputError(
                    "--decode yolo: anchors of a head are pairs of width and height in pixels, as "
                    "[10, 13, 16, 30, 33, 23]"
                )
        if self.classes < 0 or (self.image is not None and min(self.image) < 1):
            raise InputError("--decode yolo: classes and image are above 0")
        if self.version in _LISTS and self.anchors:
            raise InputError(f"--decode yolo: {self.version} has no anchors")

    @property
    def kind(self) -> Version:
        """The version, given or by default."""
        return self.version or (Version.V5 if self.anchors else Version.V8)

    @property
    def objectness(self) -> bool:
        return self.kind not in _LISTS

    def bound(self, outputs: tuple[Output, ...], image: tuple[int, int] | None) -> Bound:
        """Bind the parameters to a model's outputs, and to the rows and columns of its input.
        Raises InputError where the outputs are no such heads.
        """
        heads = self._heads(outputs)
        size = self.image or image
        anchors = self.anchors
        if not anchors and self.version is not None:
            anchors = _COCO.get((self.version, len(heads)), ())
        if not anchors and self.version is Version.V3:
            raise InputError(
                f"--decode yolo: v3 is two or three grids, and the model has "
                f"{', '.join(map(str, heads))}; give their anchors, from the finest grid on, in a "
                "TOML file: anchors = [[10, 14, 23, 27, 37, 58], [81, 82, 135, 169, 344, 319]]"
            )
        return self._grids(heads, size, anchors) if anchors else self._list(heads, size)

    def _heads(self, outputs: tuple[Output, ...]) -> tuple[Output, ...]:
        named = {output.name: output for output in outputs}
        for name in self.outputs:
            if name not in named:
                raise InputError(
                    f"--decode yolo: there is no output {name!r}, only {', '.join(named)}"
                )
        chosen = tuple(named[name] for name in self.outputs) or outputs
        for output in chosen:
            check_type(output, "yolo")
        return chosen

    def _list(self, heads: tuple[Output, ...], image: tuple[int, int] | None) -> Bound:
        """One output with boxes that the network itself has decoded."""
        before = _SIDES + int(self.objectness)
        expected = _LIST_WITH_OBJECTS if self.objectness else _LIST
        shown = ", ".join(map(str, heads))
        if len(heads) != 1:
            raise InputError(
                f"--decode yolo: {self.kind} is one output, {expected}, and the model has {shown}; "
                "name it with outputs=NAME, or give the anchors of these heads in a TOML file "
                "(v3, v5, v7)"
            )
        (head,) = heads
        channels = before + self.classes if self.classes else None
        first, last = listed(head, channels, "yolo", expected)
        if channels is None and first.size < last.size:
            first, last = last, first
        if channels is None and first.size == last.size:
            raise InputError(
                f"--decode yolo: {head} has two equal sides; say classes=NUMBER to tell which one "
                f"holds the boxes: {expected}"
            )
        if last.size <= before:
            raise InputError(
                f"--decode yolo: {head} has {last.size} numbers a box, which leaves no class; "
                f"expected is {expected}"
            )
        made = MadeHead(
            head,
            head,
            first.size,
            first.size,
            1,
            head.view(0, first, None, last),
            head.view(before, first, None, last),
        )
        return Bound(
            (made,),
            BoxCoding.CENTRES,
            last.size - before,
            Scoring.LOGISTIC if self.scores is Scores.SIGMOID else Scoring.PLAIN,
            objectness=self.objectness,
            scales=self._scales(head, image),
        )

    def _scales(
        self, head: Output, image: tuple[int, int] | None
    ) -> tuple[float, float, float, float]:
        unit = self.unit or _unit(head)
        if unit is Unit.NORMALISED:
            return (1.0, 1.0, 1.0, 1.0)
        rows, columns = _known(image)
        return (float(rows), float(columns), float(rows), float(columns))

    def _grids(
        self,
        heads: tuple[Output, ...],
        image: tuple[int, int] | None,
        anchors: tuple[tuple[float, ...], ...],
    ) -> Bound:
        if len(heads) != len(anchors):
            raise InputError(
                f"--decode yolo: anchors of {len(anchors)} heads, and the model has "
                f"{', '.join(map(str, heads))}; expected is one output for each list of anchors, "
                "[1, rows, columns, anchors * (5 + classes)], or with channels first; name "
                "them with outputs"
            )
        size = _known(image)
        counts = sorted({len(pairs) // 2 for pairs in anchors})
        readings = [list(self._readings(head, counts, size)) for head in heads]
        classes = set.intersection(*({grid.classes for grid in grids} for grids in readings))
        if len(classes) != 1:
            wrong = next(
                (h for h, grids in zip(heads, readings, strict=True) if not grids), heads[0]
            )
            raise InputError(
                f"--decode yolo: {wrong} is no grid of {' or '.join(map(str, counts))} anchors for "
                f"an image of {size[0]} rows and {size[1]} columns; expected is [1, rows, columns, "
                "anchors * (5 + classes)], [1, anchors, rows, columns, 5 + classes], or these with "
                "channels first" + ("" if self.classes or not classes else "; say classes=NUMBER")
            )
        (number,) = classes
        grids = sorted(
            (next(g for g in head_grids if g.classes == number) for head_grids in readings),
            key=lambda g: -g.cells,
        )
        made = tuple(grid.head(pairs, size) for grid, pairs in zip(grids, anchors, strict=True))
        exponents = self.kind is Version.V3
        return Bound(
            made,
            BoxCoding.EXPONENTS if exponents else BoxCoding.SQUARES,
            number,
            Scoring.LOGISTIC,
            objectness=True,
        )

    def _readings(self, head: Output, counts: list[int], image: tuple[int, int]) -> Iterator[_Grid]:
        """The ways to read an output as a grid of so many anchors."""
        axes = head.axes[1:] if head.axes and head.axes[0].size == 1 else head.axes
        for anchors in counts:
            for rows, columns, anchor, channel in _orders(axes, anchors):
                number = channel.size - _SIDES - 1
                fits = number == self.classes if self.classes else number >= 1
                even = rows.size * image[1] == columns.size * image[0]
                whole = rows.size <= image[0] and rows.step == columns.step * columns.size
                if fits and even and whole:
                    yield _Grid(head, rows.size, columns, anchor, channel, number)


@dataclass(frozen=True)
class _Grid:
    """An output as a grid. `columns` is the axis of the cells of a row."""

    output: Output
    rows: int
    columns: Axis
    anchor: Axis
    channel: Axis
    classes: int

    @property
    def cells(self) -> int:
        return self.rows * self.columns.size

    def head(self, pairs: tuple[float, ...], image: tuple[int, int]) -> MadeHead:
        """The head with its anchors: height and width as shares of the image."""
        if len(pairs) // 2 != self.anchor.size:
            raise InputError(
                f"--decode yolo: {self.output} has {self.anchor.size} anchors a cell, and "
                f"{len(pairs) // 2} are given"
            )
        sizes = np.array(pairs, np.float64).reshape(-1, 2)[:, ::-1] / np.array(image)
        out = self.output
        return MadeHead(
            out,
            out,
            self.cells,
            self.columns.size,
            self.anchor.size,
            out.view(0, self.columns, self.anchor, self.channel),
            out.view(_SIDES + 1, self.columns, self.anchor, self.channel),
            np.ascontiguousarray(sizes, np.float32),
        )


def _orders(axes: tuple[Axis, ...], anchors: int) -> Iterator[tuple[Axis, Axis, Axis, Axis]]:
    """Rows, columns, anchors and channels of an anchor, in the orders that exporters write."""
    if len(axes) == 3:
        first, middle, last = axes
        for rows, columns, both in ((first, middle, last), (middle, last, first)):
            if both.size % anchors == 0:
                each = both.size // anchors
                yield rows, columns, Axis(anchors, each * both.step), Axis(each, both.step)
    if len(axes) == 4:
        a, b, c, d = axes
        for order in ((b, c, a, d), (a, b, c, d), (c, d, a, b)):
            if order[2].size == anchors:
                yield order
    if len(axes) == 2 and anchors == 1:
        yield axes[0], axes[1], ONE, ONE


def _known(image: tuple[int, int] | None) -> tuple[int, int]:
    if image is None:
        raise InputError(
            "--decode yolo: the size of the image is not known from the model's input; give it: "
            "image = [rows, columns] in a TOML file"
        )
    return image


def _unit(head: Output) -> Unit:
    tensor = head.end.tensor
    if tensor.dtype is DType.FLOAT32:
        return Unit.PIXELS
    most = tensor.q.scale * (np.iinfo(np.int8).max - tensor.q.zero_point)
    return Unit.PIXELS if most > _PIXELS else Unit.NORMALISED

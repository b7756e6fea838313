"""Labelled samples, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from toolchain.accuracy.samples.inputs import Frame, InputReader
from toolchain.accuracy.samples.labels import Label
from toolchain.errors import InputError
from toolchain.files.arrays import Array
from toolchain.preprocess.samples import files_of

T = TypeVar("T")


@dataclass(frozen=True)
class Item(Generic[T]):
    """A sample: where it comes from, what is true of it, and its inferences, which are read when
    they are asked for. A sound may be several.
    """

    where: str
    truth: T
    frames: Callable[[], Sequence[Frame]]


def items(
    labels: Sequence[Label],
    truths: Sequence[T],
    data: Sequence[Path] | Array,
    reader: InputReader,
) -> list[Item[T]]:
    """The samples that labels belong to. Raises InputError where labels in the order of the samples
    are not as many as these."""
    if labels[0].file is not None:
        return [
            Item(str(label.file), truth, partial(reader.frames, label.file))
            for label, truth in zip(labels, truths, strict=True)
            if label.file is not None
        ]
    frames = _all_frames(data, reader)
    if len(frames) != len(labels):
        raise InputError(
            f"there are {len(labels):,} labels, and the data are of {len(frames):,} inferences"
        )
    return [
        Item(where, truth, lambda frame=frame: [frame])  # type: ignore[misc]
        for (where, frame), truth in zip(frames, truths, strict=True)
    ]


def _all_frames(data: Sequence[Path] | Array, reader: InputReader) -> list[tuple[str, Frame]]:
    """Every inference of the data in turn, and its place."""
    if not isinstance(data, Sequence):
        return [(f"sample {n}", frame) for n, frame in enumerate(reader.array_frames(data))]
    return [
        (f"{file}, inference {number}", frame)
        for file in files_of(data)
        for number, frame in enumerate(reader.frames(file))
    ]


def spread(found: Sequence[Item[T]], most: int | None) -> list[Item[T]]:
    """At most so many of the samples, taken evenly from the first to the last."""
    if most is None or len(found) <= most:
        return list(found)
    return [found[place * len(found) // most] for place in range(most)]

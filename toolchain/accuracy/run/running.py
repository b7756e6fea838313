"""Samples run in all runtimes, and the board compared with the reference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.accuracy.run.columns import BOARD, REFERENCE, Column, Outputs
from toolchain.accuracy.run.result import Agreement
from toolchain.accuracy.run.subject import Subject
from toolchain.accuracy.run.tasks import ClassesTally, Prediction, RealOutputs, Tally
from toolchain.accuracy.samples.inputs import Frame, InputReader
from toolchain.accuracy.samples.items import Item
from toolchain.deployment.verification import compare, unit_of
from toolchain.errors import InputError, LinkError
from toolchain.ir import End
from toolchain.preprocess.samples import real_values
from toolchain.progress import Report

_DECIMALS = 4
_EVERY = 50
"""Windows of a recording between two reports."""


@dataclass
class Running:
    """Gives samples to all runtimes, and compares the board with the reference."""

    subject: Subject
    columns: Sequence[Column]
    tallies: Sequence[Tally]
    report: Report
    inferences: int = 0
    elements: int = 0
    differing: int = 0
    largest: float = 0.0
    predictions: list[Mapping[str, list[Prediction]]] = field(default_factory=list)

    def sample(self, item: Item[Any]) -> None:
        """Run a labelled sample. Raises InputError where it has no inference; LinkError, which says
        the sample."""
        frames = item.frames()
        if not frames:
            raise InputError(f"{item.where} holds no data")
        done: dict[str, list[Outputs]] = {}
        predicted = {}
        for column, tally in zip(self.columns, self.tallies, strict=True):
            try:
                done[column.name] = list(column.run(frames))
            except LinkError as error:
                raise LinkError(f"{item.where}: {error}") from error
            outputs = [self._real(one) for one in done[column.name]]
            predicted[column.name] = tally.add(item.truth, outputs)
        self.predictions.append(predicted)
        self._compare(done)
        self.inferences += len(frames)

    def recording(self, file: Path, reader: InputReader) -> None:
        """Run a long sound without keywords. Raises InputError where it is too short."""
        seconds, windows = reader.recording(file)
        for tally in self.tallies:
            assert isinstance(tally, ClassesTally) and tally.keywords is not None
            tally.keywords.begin(seconds)
        count = 0
        for at, rows in self._heard(windows):
            if count % _EVERY == 0:
                self.report(f"listening to {file.name}", int(at), int(seconds))
            count += 1
            for tally, outputs in zip(self.tallies, rows, strict=True):
                assert isinstance(tally, ClassesTally)
                tally.hear(at, self._real(outputs))
        if not count:
            raise InputError(f"{file} is too short: {seconds:.3g} seconds are no inference")

    def _heard(
        self, windows: Iterator[tuple[float, Frame]]
    ) -> Iterator[tuple[float, list[Outputs]]]:
        """The outputs of all runtimes for each window. A state goes on from one to the next."""
        if not self.subject.stateful:
            for at, frame in windows:
                yield at, [one for column in self.columns for one in column.run([frame])]
            return
        timed = list(windows)
        frames = [frame for _, frame in timed]
        rows = zip(*(column.run(frames) for column in self.columns), strict=True)
        for (at, _), row in zip(timed, rows, strict=True):
            yield at, list(row)

    def agreement(self) -> Agreement | None:
        """The board beside the reference; None unless both ran."""
        if not {BOARD, REFERENCE} <= {column.name for column in self.columns}:
            return None
        pairs = [
            pair
            for one in self.predictions
            for pair in zip(one[BOARD], one[REFERENCE], strict=True)
        ]
        same = sum(board == reference for board, reference in pairs)
        return Agreement(self.elements, self.differing, self.largest, len(pairs), same)

    def _compare(self, done: Mapping[str, Sequence[Outputs]]) -> None:
        for got, want in zip(done.get(BOARD, ()), done.get(REFERENCE, ()), strict=False):
            for end in self.subject.outputs:
                ours, theirs = got[end.name].reshape(end.model_shape), want[end.name]
                differing = compare(self.inferences, end.name, ours, theirs)
                self.elements += ours.size
                self.differing += len(differing)
                largest = round(differing.largest(unit_of(end, theirs)), _DECIMALS)
                self.largest = max(self.largest, largest)

    def _real(self, outputs: Outputs) -> RealOutputs:
        return {end.name: _real(outputs[end.name], end) for end in self.subject.outputs}


def _real(values: NDArray[Any], end: End) -> NDArray[np.float64]:
    """Real values of an output; numbers without a scale are what they are."""
    real = real_values(values, end)
    return values.astype(np.float64) if real is None else real

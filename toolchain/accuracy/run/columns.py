"""The runtimes side by side: each takes the inferences of a sample, and gives their outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolchain.accuracy.run.subject import Subject, float_decoder
from toolchain.accuracy.samples.inputs import Frame
from toolchain.deployment.decoded import Decoder
from toolchain.deployment.run import Deployment
from toolchain.errors import InputError
from toolchain.files.arrays import Array
from toolchain.ir import End
from toolchain.ops.detection.decode_boxes import OUTPUTS
from toolchain.planning.options import PlanOptions
from toolchain.quantise.float_model import FloatModel
from toolchain.reference import Reference

FLOAT, REFERENCE, BOARD = "float", "reference", "board"
Outputs = Mapping[str, Array]
"""Outputs of one inference, by the names of the model's."""


@dataclass(frozen=True)
class Column:
    """A runtime. `run`: the outputs of inferences in turn, from the initial state on."""

    name: str
    title: str
    run: Callable[[Iterable[Frame]], Iterator[Outputs]]


def board_column(deployment: Deployment) -> Column:
    """A board, or the emulated one that stands for it."""

    def run(frames: Iterable[Frame]) -> Iterator[Outputs]:
        if not deployment.stateful:
            for frame in frames:
                yield deployment.run(frame.own).outputs
            return
        given = [frame.own for frame in frames]
        done = deployment.run_sequence(given).outputs
        for place in range(len(given)):
            yield done if len(given) == 1 else {name: done[name][place] for name in done}

    return Column(BOARD, deployment.ran_on, run)


def reference_column(reference: Reference, subject: Subject) -> Column:
    """The runtime that says what the model file means."""

    def run(frames: Iterable[Frame]) -> Iterator[Outputs]:
        if subject.stateful:
            reference.restart()
        for frame in frames:
            done = reference.run([frame.own[end.name] for end in subject.inputs])
            outputs = {end.name: v for end, v in zip(subject.heads, done, strict=True)}
            if subject.decoder is not None:
                outputs |= subject.decoder.expected(subject.heads, outputs)
            yield outputs

    return Column(REFERENCE, reference.name, run)


def float_column(model: FloatModel, file: Path, subject: Subject, options: PlanOptions) -> Column:
    """The float model that the quantised one came from; its outputs get the names of the latter's.

    Raises InputError where it has another number of outputs, or gives another number of elements.
    """
    names = _matched([end.name for end in subject.heads], model.outputs)
    decoder, heads = float_decoder(file, options) if subject.decoded else (None, ())

    def run(frames: Iterable[Frame]) -> Iterator[Outputs]:
        if subject.stateful:
            model.restart()
        for frame in frames:
            assert frame.wide is not None
            done = model.run(frame.wide)
            for end in subject.heads:
                if done[names[end.name]].size != end.tensor.elements:
                    raise InputError(
                        f"output {names[end.name]!r} of the float model has "
                        f"{done[names[end.name]].size:,} elements, and output {end.name!r} of the "
                        f"model {end.tensor.elements:,}"
                    )
            outputs = {name: done[other] for name, other in names.items()}
            if decoder is not None:
                outputs |= _boxes(decoder, heads, [outputs[e.name] for e in subject.heads], subject)
            yield outputs

    return Column(FLOAT, file.name, run)


def _boxes(
    decoder: Decoder, heads: tuple[End, ...], given: Sequence[Array], subject: Subject
) -> dict[str, Array]:
    """The boxes of the float model's heads, by the names of the model's outputs."""
    made = decoder.expected(heads, {end.name: v for end, v in zip(heads, given, strict=True)})
    assert subject.boxes is not None
    return {
        subject.boxes[role]: made[name]
        for role, name in zip(OUTPUTS, decoder.op.outputs, strict=True)
    }


def _matched(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """The float model's output for each of ours: of the same name if all have one, else of the same
    place."""
    if len(ours) != len(theirs):
        raise InputError(f"the float model has {len(theirs)} outputs, and the model {len(ours)}")
    same = set(ours) == set(theirs)
    return {name: name if same else other for name, other in zip(ours, theirs, strict=True)}

"""The reference of a TFLite file: its operators, each run by the runtime that is right for it.

`judges.py` says which runtime judges which operator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolchain.errors import InputError
from toolchain.frontends.tflite.file import FileModel, FileOp, read_file
from toolchain.ir import Graph
from toolchain.ops.spec import Array
from toolchain.packages import VERIFY
from toolchain.reference.cut import (
    Cutter,
    Part,
    can_be_cut,
    lone_scales,
    part_of,
    parts,
    shared_variables,
)
from toolchain.reference.judges import RULES, rule_of, tolerance_of
from toolchain.reference.process import (
    NotInstalledError,
    OpenModel,
    RefusedError,
    Runtime,
    RuntimeProcess,
    open_model,
)
from toolchain.reference.reference import Judge, NumpyReference, Reference
from toolchain.reference.unwritten import filled, leaves_places, telling


@dataclass(frozen=True)
class _Step:
    part: Part
    model: OpenModel


@dataclass(frozen=True)
class TfliteReference:
    """The file's operators, each run by its judge; in one piece if one judges all.

    `constants` are inputs and outputs of the model that no operator writes. `unfilled` leave
    places of their outputs unwritten, and are parts of their own.
    """

    steps: tuple[_Step, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    constants: Mapping[int, Array]
    judges: tuple[Judge, ...]
    tolerance: int
    unfilled: tuple[FileOp, ...] = ()
    not_independent: str = ""

    @property
    def name(self) -> str:
        """The judges, the one with most operators first."""
        first, *others = sorted(self.judges, key=lambda judge: -len(judge.operators))
        named = [f"{', '.join(sorted(set(j.operators)))} by {j.runtime}" for j in others]
        return "; ".join([first.runtime, *named])

    def run(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        values = dict(self.constants) | dict(zip(self.inputs, inputs, strict=True))
        for step in self.steps:
            given = [values[tensor] for tensor in step.part.reads]
            values.update(zip(step.part.writes, step.model.run(given), strict=True))
            for op in self.unfilled:
                values.update(filled(op, values))
        return tuple(values[tensor] for tensor in self.outputs)

    def restart(self) -> None:
        for step in self.steps:
            step.model.restart()


_SHOWN = 2
"""Refusals that a reason quotes."""
_LONE_SCALES = "LiteRT reads a scale of each depthwise filter, where the file has one of all"
_USUAL = RULES[-1].judges[0]


class _NoJudgeError(Exception):
    """No runtime is left for an operator; the text says which and why."""


@dataclass
class _Choosing:
    """The choice of judges: `turn` counts, for each operator, the judges of its rule that refused.

    `copied`: why a copy of the file's operators was judged where one runtime judges them all.
    """

    data: bytes
    model: FileModel
    graph: Graph
    process: RuntimeProcess
    turn: list[int] = field(init=False)
    refusals: dict[int, list[str]] = field(default_factory=dict)
    copied: str = ""
    cutter: Cutter | None = None

    def __post_init__(self) -> None:
        self.rules = [rule_of(op, self.model) for op in self.model.ops]
        self.turn = [0] * len(self.rules)

    def judge(self, place: int) -> Runtime:
        rule, turn = self.rules[place], self.turn[place]
        if turn < len(rule.judges):
            return rule.judges[turn]
        op = self.model.ops[place]
        raise _NoJudgeError(f"{op}: {'; '.join(self.refusals.get(place, [rule.why]))}")

    def steps(self) -> tuple[_Step, ...]:
        """Open all parts. Raises _NoJudgeError; InputError where a runtime crashes."""
        if not can_be_cut(self.model):
            return (self._whole(),)
        while True:
            choice = [
                (self.judge(place), leaves_places(op)) for place, op in enumerate(self.model.ops)
            ]
            made = parts(self.model, choice)
            if shared_variables(self.model, made):
                return (self._whole(),)
            steps = [self._open(part, alone=len(made) == 1) for part in made]
            opened = tuple(step for step in steps if step is not None)
            if len(opened) == len(steps):
                return opened

    def _whole(self) -> _Step:
        """One judge for operators that cannot be parted."""
        part = part_of(self.model, range(len(self.model.ops)))
        if lone_scales(self.model):
            raise _NoJudgeError(f"{_LONE_SCALES}, and the file is only run whole")
        if hidden := self._hidden(part):
            raise _NoJudgeError(
                f"{hidden} leaves places as they were, and the file, which is only run whole, does "
                "not return what tells which places these are"
            )
        if unsettled := self._unsettled():
            raise _NoJudgeError(
                f"{unsettled} leaves places as they were, which other operators read, and the file "
                "is only run whole"
            )
        every = [rule.judges for rule in self.rules]
        said = []
        for judge in every[0]:
            if all(judge in judges for judges in every):
                try:
                    opened = open_model(self.process, judge, self.data, len(self.model.outputs))
                except RefusedError as error:
                    said.append(f"{judge.title}: {_line(error)}")
                    continue
                self.turn = [judges.index(judge) for judges in every]
                return _Step(Part(part.ops, self.model.inputs, self.model.outputs), opened)
        raise _NoJudgeError("; ".join(said) or "no runtime is right on all of its operators")

    def _open(self, part: Part, alone: bool) -> _Step | None:
        """Open a part; None where a runtime refused and operators now have other judges."""
        try:
            return self._step(part, alone)
        except RefusedError as error:
            if len(part.ops) == 1:
                self._refused(part.ops[0], error)
                return None
            whole = error
        any_refused = False
        for place in part.ops:
            try:
                self._step(part_of(self.model, [place]), alone=False)
            except RefusedError as error:
                self._refused(place, error)
                any_refused = True
        if not any_refused:
            raise _NoJudgeError(f"{self.judge(part.ops[0]).title}: {_line(whole)}")
        return None

    def _step(self, part: Part, alone: bool) -> _Step:
        """Open a part in its runtime: the file as it is, where one runtime takes all of it; else a
        copy."""
        runtime = self.judge(part.ops[0])
        refused: RefusedError | None = None
        completed = bool(lone_scales(self.model))
        alone = alone and self._hidden(part) is None and not completed
        if alone:
            part = Part(part.ops, self.model.inputs, self.model.outputs)
        if alone and runtime is not Runtime.TFLITE_MICRO:
            try:
                return _Step(part, open_model(self.process, runtime, self.data, len(part.writes)))
            except NotInstalledError:
                raise
            except RefusedError as error:
                refused = error
        try:
            self.cutter = self.cutter or Cutter(self.data, self.model, self.graph)
            data = self.cutter.written(part)
        except InputError as error:
            raise RefusedError(str(error)) from error
        step = _Step(part, open_model(self.process, runtime, data, len(part.writes)))
        if completed:
            self.copied = f"of a copy that gives each filter the one scale: {_LONE_SCALES}"
        if refused is not None:
            self.copied = f"of a copy of its operators, since it refuses the file: {_line(refused)}"
        return step

    def _hidden(self, part: Part) -> FileOp | None:
        """An operator that leaves places unwritten, and tells which only inside the file."""
        ops = (self.model.ops[place] for place in part.ops)
        return next((op for op in ops if not set(telling(op)) <= set(self.model.outputs)), None)

    def _unsettled(self) -> FileOp | None:
        """An operator of a graph that is called, or one whose outputs another reads, that leaves
        places unwritten: what a runtime makes of these is not to be had."""
        read = {i for op in self.model.ops for i in op.inputs}
        own = (op for op in self.model.ops if read.intersection(op.outputs))
        called = (op for other in self.model.others for op in other.ops)
        return next(filter(leaves_places, (*own, *called)), None)

    def _refused(self, place: int, error: RefusedError) -> None:
        judge = self.judge(place)
        self.turn[place] += 1
        missing_too = isinstance(error, NotInstalledError)
        why = "not installed" if missing_too else _line(error)
        self.refusals.setdefault(place, []).append(f"{judge.title}: {why}")

    def judges(self) -> tuple[Judge, ...]:
        """One for each runtime, with all of its reasons."""
        places_of: dict[Runtime, list[int]] = {}
        for place in range(len(self.rules)):
            places_of.setdefault(self.judge(place), []).append(place)
        judges = []
        for runtime, places in places_of.items():
            rules = [self.rules[place] for place in places]
            chosen = [rule.why for rule in rules if rule.judges[0] is runtime is not _USUAL]
            said = [text for place in places for text in self.refusals.get(place, [])]
            copied = [self.copied] if self.copied else []
            why = "; ".join(dict.fromkeys([*chosen, *said[:_SHOWN], *copied])) or RULES[-1].why
            operators = tuple(self.model.ops[p].custom or self.model.ops[p].code for p in places)
            judges.append(Judge(runtime.title, operators, why))
        return tuple(judges)


def _line(error: Exception) -> str:
    """The message of a runtime on one line, cut to 200 characters."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:200] + "..."


def open_tflite(data: bytes, graph: Graph, process: RuntimeProcess) -> Reference:
    """The reference of a TFLite file that was read as `graph`.

    Thimble's own interpreter where no runtime takes an operator. Raises InputError where a runtime
    crashes on the file, and MissingToolError without LiteRT.
    """
    if "ai_edge_litert" in VERIFY.missing:
        raise VERIFY.lacks("ai_edge_litert")
    model = read_file(data)
    choosing = _Choosing(data, model, graph, process)
    try:
        steps = choosing.steps()
    except _NoJudgeError as error:
        return NumpyReference(graph, str(error))
    written = {tensor for step in steps for tensor in step.part.writes} | set(model.inputs)
    ends = {i: model.tensors[i].tensor for i in model.outputs if i not in written}
    constants = {
        i: tensor.constant
        for i, tensor in ends.items()
        if tensor is not None and tensor.constant is not None
    }
    used = [(rule, choosing.judge(place)) for place, rule in enumerate(choosing.rules)]
    return TfliteReference(
        steps,
        model.inputs,
        model.outputs,
        constants,
        choosing.judges(),
        tolerance_of(used),
        tuple(filter(leaves_places, model.ops)),
    )

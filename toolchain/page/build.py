"""The content of the page of one build: JSON of `plan`, `compile`, `profile` and other commands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from toolchain.boards import Board, named_in
from toolchain.boards import board as find_board
from toolchain.cost.basis import Basis
from toolchain.errors import InputError
from toolchain.files.records import decode, field_of
from toolchain.page.document import (
    VERSION,
    Amount,
    Bank,
    Buffer,
    Build,
    Change,
    Choice,
    Document,
    Function,
    Operator,
    OperatorChange,
    Step,
    Tensor,
    Verdict,
)
from toolchain.page.network import network
from toolchain.report.planned import (
    PlannedBank,
    PlannedBuffer,
    PlannedOperator,
    PlannedTensor,
    PlannedTime,
)
from toolchain.report.text import share, size

Json = Mapping[str, Any]
_MOST_MOVED = 20
"""Operators that a page of two builds lists."""
_FIGURES: Mapping[str, tuple[str, ...]] = {
    "classes": ("accuracy", "accuracy_low", "accuracy_high", "top_5", "macro_f1"),
    "numbers": ("mae", "rmse", "r2", "largest_error"),
    "boxes": ("map", "map_50", "map_75", "boxes", "found"),
}
"""The figures of `accuracy` that a page shows, by its task."""
INPUT = -1
"""The source of an edge from outside, and the writer of such a tensor."""


@dataclass(frozen=True)
class Findings:
    """Facts about a build: JSON of the commands, and None where one did not run.

    plan       of `plan` or `compile`, or of the file `plan.json`
    problem    why it does not fit; empty where it does
    sections   bytes of the linked firmware by section
    profile    of `profile`, with `loops` where they were asked for
    verified   of `verify`
    quantised  of `quantize`
    accuracy   of `accuracy`
    label      what tells it from another build of the model for the board; may be empty
    commands   the command line of each entry of `pareto` in the plan
    facts      names and values: versions, hashes
    """

    plan: Json
    problem: str = ""
    sections: Json | None = None
    profile: Json | None = None
    verified: Json | None = None
    quantised: Json | None = None
    accuracy: Json | None = None
    label: str = ""
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class _Layer:
    """An entry of `layers` of `quantize`; no `noise_db`: nothing is lost."""

    tensor: str
    operator: str
    noise_db: float | None
    max_error: float


@dataclass(frozen=True)
class _Read:
    """The parts of `plan.json` that refer to each other, and indices into them."""

    operators: tuple[PlannedOperator, ...]
    tensors: Mapping[str, PlannedTensor]
    buffers: tuple[PlannedBuffer, ...]
    states: frozenset[str]
    writers: Mapping[str, int] = field(init=False)
    rows: Mapping[tuple[str, str], int] = field(init=False)

    def __post_init__(self) -> None:
        writers = {name: op.step for op in self.operators for name in op.outputs}
        object.__setattr__(self, "writers", writers)
        names = dict.fromkeys(op.counted_as for op in self.operators)
        object.__setattr__(self, "rows", {name: row for row, name in enumerate(names)})


def build(found: Findings, where: str = "plan.json") -> Build:
    """The values of one build; `where` names the plan in errors. Raises InputError where the plan
    lacks a field, and MissingToolError without the extra `[report]`.
    """
    plan = found.plan
    read = _read(plan, where)
    board = find_board(named_in(plan, where))
    operators = tuple(_operators(read, found.profile))
    sides = [
        {field_of(end, "name", str, where) for end in field_of(plan, side, tuple[Any, ...], where)}
        for side in ("inputs", "outputs")
    ]
    live = [op.live_bytes for op in read.operators] or [0]
    model = field_of(plan, "model", str, where)
    return Build(
        title=f"{model} on {board.name}" + (f" ({found.label})" if found.label else ""),
        model=model,
        board=board.name,
        what=board.title,
        core=board.core.name,
        clock_hz=board.clock_hz,
        verdict=_verdict(found, board, where),
        macs=field_of(plan, "macs", int, where),
        arena=field_of(plan, "arena_bytes", int, where),
        peak_step=live.index(max(live)),
        peak=_peak(field_of(plan, "arena_bytes", int, where), max(live), live.index(max(live))),
        banks=tuple(
            Bank(bank.bank, bank.start, bank.bytes)
            for bank in field_of(plan, "arena_banks", tuple[PlannedBank, ...], where)
        ),
        tensors=tuple(_tensors(read)),
        buffers=tuple(_buffers(read)),
        steps=tuple(
            Step(op.name, op.kind, read.rows[op.counted_as], op.live_bytes) for op in read.operators
        ),
        operators=operators,
        network=network(read.operators, read.tensors, read.rows, *sides),
        choices=tuple(_choices(found)),
        functions=tuple(
            Function(entry["name"], entry["count"], entry["instructions"])
            for entry in (found.profile or {}).get("functions", ())
        ),
        loops=tuple((found.profile or {}).get("loops", ())),
        ends=tuple(
            {"side": side, **entry}
            for side in ("inputs", "outputs")
            for entry in field_of(plan, side, tuple[Any, ...], where)
        ),
        verification=found.verified,
        quantisation=_quantisation(found.quantised),
        accuracy=_accuracy(found.accuracy),
        notes=(*_notes(plan), *found.notes),
        facts=found.facts,
    )


def document(builds: Sequence[Build], command: str) -> Document:
    """The page of one build, or of two with what changed from the first to the second."""
    title = " and ".join(dict.fromkeys(build.title for build in builds))
    if len(builds) != 2:
        return Document(VERSION, title, command, tuple(builds))
    changes, moved = tuple(_changes(*builds)), tuple(_moved(*builds))
    return Document(VERSION, title, command, tuple(builds), changes, moved)


def _picked(kind: type[Any], entry: Any, where: str) -> Any:
    """The fields of `kind` from an object that may have more."""
    names = kind.__dataclass_fields__
    given = {k: v for k, v in entry.items() if k in names} if isinstance(entry, Mapping) else entry
    return decode(kind, given, where)


def _read(plan: Json, where: str) -> _Read:
    operators = field_of(plan, "operators", tuple[Any, ...], where)
    tensors = field_of(plan, "tensors", Mapping[str, Any], where)
    buffers = field_of(plan, "buffers", tuple[Any, ...], where)
    states = field_of(plan, "states", tuple[Any, ...], where)
    return _Read(
        tuple(
            _picked(PlannedOperator, o, f"{where}: operators[{i}]") for i, o in enumerate(operators)
        ),
        {
            name: _picked(PlannedTensor, t, f"{where}: tensors.{name}")
            for name, t in tensors.items()
        },
        tuple(_picked(PlannedBuffer, b, f"{where}: buffers[{i}]") for i, b in enumerate(buffers)),
        frozenset(field_of(state, "name", str, f"{where}: states") for state in states),
    )


def _tensors(read: _Read) -> Iterator[Tensor]:
    readers: dict[str, list[int]] = {name: [] for name in read.tensors}
    for op in read.operators:
        for name in op.inputs:
            readers.setdefault(name, []).append(op.step)
    for name, tensor in read.tensors.items():
        writer = read.writers.get(name, INPUT)
        yield Tensor(
            name,
            tensor.shape,
            tensor.dtype,
            tensor.bytes,
            tensor.offset,
            *tensor.live,
            writer,
            tuple(readers[name]),
        )


def _buffers(read: _Read) -> Iterator[Buffer]:
    index = {name: i for i, name in enumerate(read.tensors)}
    for buffer in read.buffers:
        kind = "state" if read.states.intersection(buffer.tensors) else "activations"
        members = tuple(index[name] for name in buffer.tensors if name in index)
        first = buffer.tensors[0]
        yield Buffer(first, kind, buffer.offset, buffer.bytes, members, buffer.runs)
    for op in read.operators:
        if op.scratch_offset is not None and op.scratch_bytes:
            runs = ((op.step, 0, op.scratch_bytes), (op.step + 1, 0, 0))
            yield Buffer(op.name, "scratch", op.scratch_offset, op.scratch_bytes, (), runs)


def _operators(read: _Read, profile: Json | None) -> Iterator[Operator]:
    """One for each operator of the network; its blocks are together. Counts are the profile's."""
    timed = {(p["name"], p["kind"]): p for p in (profile or {}).get("operators", ())}
    parts: dict[tuple[str, str], list[PlannedOperator]] = {}
    for op in read.operators:
        parts.setdefault(op.counted_as, []).append(op)
    for (name, kind), blocks in parts.items():
        run = timed.get((name, kind))
        bases = {op.basis for op in blocks if op.count}
        basis = bases.pop() if len(bases) == 1 else Basis.PREDICTED
        called = [op for op in blocks if not op.is_view]
        count = run["count"] if run else 0 if profile else sum(op.count for op in blocks)
        functions = dict.fromkeys(name for op in called for name in op.functions)
        yield Operator(
            name=name,
            kind=kind,
            place=blocks[0].block,
            steps=tuple(op.step for op in blocks),
            calls=len(called),
            macs=sum(op.macs for op in blocks),
            moved=sum(op.moved_bytes for op in called),
            constants=max(op.constant_bytes for op in blocks),
            live=max(op.live_bytes for op in blocks),
            scratch=max(op.scratch_bytes for op in blocks),
            functions=tuple(functions),
            count=count,
            instructions=run.get("instructions") if run else None,
            bound=run.get("bound") if run else None,
            basis=(Basis(profile["basis"]) if profile else basis).text,
        )


def _verdict(found: Findings, board: Board, where: str) -> Verdict:
    plan, sections = found.plan, found.sections or {}
    ram, flash, code, weights, arena, bound = (
        field_of(plan, name, int, where)
        for name in (
            "ram_bytes",
            "flash_bytes",
            "code_bytes",
            "weight_bytes",
            "arena_bytes",
            "lower_bound_bytes",
        )
    )
    latency: PlannedTime = (
        _picked(PlannedTime, found.profile, "the profile")
        if found.profile
        else _picked(PlannedTime, plan.get("latency"), f"{where}: latency")
    )
    proved = arena == bound
    proof = (
        f"The arena of {size(arena)} is proved minimal: no order of these operators needs less."
        if proved
        else f"Arena {size(arena)}; no order of these operators needs less than {size(bound)} "
        f"(gap {share(arena - bound, arena)})."
    )
    checked = found.verified
    stack = sections.get("stack_bytes", 0)
    rest = ram - arena - stack
    others = (("stack", stack), ("data", rest)) if stack else (("data and stack", rest),)
    return Verdict(
        fits=not found.problem,
        problem=found.problem,
        ram=Amount("RAM", ram, board.ram_bytes, (("arena", arena), *others)),
        flash=Amount(
            "flash",
            flash,
            board.flash_bytes,
            (("weights", weights), ("code", code), ("other data", flash - weights - code)),
        ),
        estimated=bool(plan.get("memory_estimated")),
        milliseconds=latency.milliseconds,
        count=latency.total,
        unit=latency.unit,
        basis=latency.basis.text,
        proof=proof,
        proved=proved,
        compared=""
        if checked is None
        else f"{checked['elements']:,} output elements in {checked['runs']} runs compared with "
        f"{checked['reference']}",
        differing=None if checked is None else checked["differing"],
        passed=None if checked is None else checked["passed"],
    )


def _peak(arena: int, live: int, step: int) -> str:
    """Why an arena may be larger than what is live at once."""
    if arena <= live:
        return f"The arena is as large as the most bytes that are live at once, at step {step}."
    return (
        f"The arena has {arena:,} B; at most {live:,} B are live at once, at step {step}. "
        f"The other {arena - live:,} B are gaps: a buffer keeps its place as long as it lives, and "
        "begins at a multiple of its alignment, so the buffers of a step need not touch."
    )


def _notes(plan: Json) -> Iterator[str]:
    """Sentences about the changes that planning made to the network."""
    whole, slower = plan.get("unsplit_arena_bytes", 0), plan.get("slowdown_percent", 0.0)
    cost = f"{slower:.2f}% slower than" if slower else "as quick as"
    arena = plan["arena_bytes"]
    if whole and whole != arena:
        yield (
            f"Split into blocks: arena {size(arena)} instead of {size(whole)}, {cost} the quickest "
            "plan as predicted."
        )
    elif slower:
        yield f"Arena {size(arena)}, {cost} the quickest plan as predicted."
    spent = plan.get("flash_spent", {})
    if spent.get("operators"):
        yield (
            f"{spent['operators']} convolutions are computed by Winograd's algorithm: "
            f"{size(spent['weight_bytes'])} more flash, {spent['saved']:,} {spent['unit']} fewer, "
            "as predicted."
        )
    removed = plan.get("removed", {})
    if removed.get("channels"):
        yield (
            f"{removed['channels']:,} channels that cannot change an output are removed, with "
            f"{size(removed['weight_bytes'])} of constants."
        )
    for name in ("other_kernels", "inexact_kernels"):
        for entry in plan.get(name, ()):
            yield f"{entry['operator']} runs {', '.join(entry['functions'])}: {entry['why']}"


def _quantisation(found: Json | None) -> Json | None:
    """The layers of `quantize`, the one that loses most first."""
    if found is None:
        return None
    where = "the report of quantize"
    layers = tuple(
        _picked(_Layer, entry, f"{where}: layers[{i}]")
        for i, entry in enumerate(field_of(found, "layers", tuple[Any, ...], where))
    )
    worst = sorted(layers, key=lambda one: math.inf if one.noise_db is None else one.noise_db)
    return {
        "compared": field_of(found, "compared", int, where),
        "layers": tuple(asdict(layer) for layer in worst),
    }


def _accuracy(found: Json | None) -> Json | None:
    """The figures of `accuracy`, if they are complete. Raises InputError for those of no such
    command."""
    if found is None:
        return None
    where = "the report of accuracy"
    judged = field_of(found, "judged", str, where)
    runtimes = field_of(found, "runtimes", Mapping[str, Any], where)
    shown = _FIGURES.get(field_of(found, "task", str, where))
    if shown is None or judged not in runtimes:
        raise InputError(f"{where} has no figures of its task")
    field_of(found, "samples", int, where)
    for name, runtime in runtimes.items():
        at = f"{where}: runtimes.{name}"
        field_of(runtime, "title", str, at)
        for figure in shown:
            field_of(runtime, figure, float | None, at)
        field_of(runtime, "numbers" if "mae" in shown else "classes", tuple[Any, ...], at)
    return found


def _choices(found: Findings) -> Iterator[Choice]:
    """The rows of `plan --pareto`, each with the command that takes it."""
    rows = found.plan.get("pareto", ())
    for row, command in zip(rows, found.commands, strict=True):
        splits = [f"{len(s['operators'])} operators in {s['blocks']} blocks" for s in row["splits"]]
        yield Choice(
            ram=row["ram_bytes"],
            flash=row["flash_bytes"],
            milliseconds=row["milliseconds"],
            count=row["total"],
            slowdown=row["slowdown_percent"],
            what=", ".join(splits) or "nothing is split",
            command=command,
        )


def _changes(first: Build, second: Build) -> Iterator[Change]:
    """The figures of two builds side by side."""
    one, two = first.verdict, second.verdict
    yield Change("RAM", "B", one.ram.used, two.ram.used)
    yield Change("flash", "B", one.flash.used, two.flash.used)
    yield Change("arena", "B", first.arena, second.arena)
    before, after = dict(one.flash.parts), dict(two.flash.parts)
    for name in ("weights", "code"):
        yield Change(name, "B", before[name], after[name])
    yield Change("time", "ms", one.milliseconds, two.milliseconds)
    if one.unit == two.unit:
        yield Change("time", one.unit, one.count, two.count)
    yield Change("products", "", first.macs, second.macs)
    yield Change("operators", "", len(first.operators), len(second.operators))


def _moved(first: Build, second: Build) -> Iterable[OperatorChange]:
    """Operators of the same name and kind are the same."""
    if first.verdict.unit != second.verdict.unit:
        return ()
    counts = [{(op.name, op.kind): op.count for op in build.operators} for build in (first, second)]
    found = [
        OperatorChange(*key, counts[0].get(key), counts[1].get(key))
        for key in dict.fromkeys((*counts[0], *counts[1]))
    ]
    differing = [one for one in found if (one.first or 0) != (one.second or 0)]
    differing.sort(key=lambda one: -abs((one.second or 0) - (one.first or 0)))
    return differing[:_MOST_MOVED]

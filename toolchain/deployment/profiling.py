"""The operators of a compiled model, counted on its board in several runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cost.database import Database
from toolchain.cost.key import Build, Key
from toolchain.deployment.folder import KEYS_FILE, PLAN_FILE, compiled_model
from toolchain.deployment.measurements import basis_of, taken
from toolchain.deployment.run import Deployment, deployed
from toolchain.errors import InputError
from toolchain.files.records import field_of, read_json
from toolchain.files.records import record as record_of
from toolchain.progress import Report, silent

DEFAULT_RUNS = 5


@dataclass(frozen=True)
class Part:
    """An operator, or several together. `counts` has one count per run, in the profile's unit.

    `moved_bytes`: bytes of inputs, weights and outputs, each once. `calls`: how often it runs in
    one inference; more than once if it was split into blocks.
    """

    name: str
    kind: str
    block: str
    counts: tuple[int, ...]
    macs: int
    moved_bytes: int
    calls: int = 1

    @property
    def count(self) -> int:
        """The median of the runs."""
        return median_low(self.counts)

    @property
    def spread(self) -> int:
        """The largest count minus the smallest."""
        return max(self.counts) - min(self.counts)


@dataclass(frozen=True)
class Profile:
    """Counts of a compiled model. `totals` has one count per whole inference.

    `unit` is 'instructions' (QEMU) or 'cycles' (silicon); `clock_hz` converts cycles to time.
    """

    model: str
    board: str
    unit: str
    clock_hz: int
    totals: tuple[int, ...]
    operators: tuple[Part, ...]

    @property
    def total(self) -> int:
        return median_low(self.totals)

    @property
    def spread(self) -> int:
        return max(self.totals) - min(self.totals)

    @property
    def outside(self) -> int:
        """The total minus the operators' counts: the loop that calls them.

        It can be slightly below 0 if that loop is short, since the cost of counting is known to
        about one count per operator.
        """
        return self.total - sum(part.count for part in self.operators)

    def milliseconds(self, count: int) -> float | None:
        """Time on silicon; None for instructions, which have none."""
        return 1e3 * count / self.clock_hz if self.unit == "cycles" and self.clock_hz else None

    def by_kind(self) -> tuple[Part, ...]:
        """The operators of each kind together, most expensive first."""
        return _summed(self.operators, lambda part: part.kind)

    def by_block(self) -> tuple[Part, ...]:
        """The operators of each block together, in running order."""
        summed = _summed(self.operators, lambda part: part.block)
        place = {part.block: i for i, part in reversed(list(enumerate(self.operators)))}
        return tuple(sorted(summed, key=lambda part: place[part.block]))


def _summed(parts: Sequence[Part], key: Callable[[Part], str]) -> tuple[Part, ...]:
    groups: dict[str, list[Part]] = {}
    for part in parts:
        groups.setdefault(key(part), []).append(part)
    summed = [
        Part(
            name=name,
            kind=_shared(part.kind for part in group),
            block=_shared(part.block for part in group),
            counts=tuple(map(sum, zip(*(part.counts for part in group), strict=True))),
            macs=sum(part.macs for part in group),
            moved_bytes=sum(part.moved_bytes for part in group),
            calls=sum(part.calls for part in group),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(summed, key=lambda part: -part.count))


def _shared(values: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else f"{len(distinct)} different"


def profile_folder(
    folder: str | Path, port: str | None = None, runs: int = DEFAULT_RUNS, report: Report = silent
) -> Profile:
    """Run a compiled folder `runs` times on the same pseudo-random input, and count.

    Raises InputError for a folder without a firmware that counts, LinkError where the board fails.
    """
    if runs < 1:
        raise InputError(f"{runs} runs measure nothing")
    board = compiled_model(folder).board
    if board.is_host:
        raise InputError("nothing is counted on this machine: compile for a board, or one in QEMU")
    report("starting")
    with deployed(folder, port) as deployment:
        return profile_deployment(deployment, Path(folder), board, runs, report)


def profile_deployment(
    deployment: Deployment, folder: Path, board: Board, runs: int, report: Report = silent
) -> Profile:
    """As `profile_folder`, for a model that is already running."""
    planned = _planned(folder)
    totals: list[int] = []
    counts: list[tuple[int, ...]] = []
    unit = ""
    names: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    for run in range(runs):
        report(f"running on {board.name}", run, runs)
        done = _inference(deployment)
        operators = deployment.operator_counts()
        if not operators:
            raise InputError(f"the firmware in {folder} was built without counters: compile again")
        totals.append(done)
        counts.append(tuple(op.count for op in operators))
        names = tuple((op.name, op.kind, op.blocks) for op in operators)
        unit = board.counter.unit if board.counter else "cycles"
    return Profile(
        model=str(planned["model"]),
        board=board.name,
        unit=unit,
        clock_hz=board.clock_hz,
        totals=tuple(totals),
        operators=tuple(
            _part(name, kind, blocks, tuple(run[i] for run in counts), planned["operators"])
            for i, (name, kind, blocks) in enumerate(names)
        ),
    )


@dataclass(frozen=True)
class _CountedKernel:
    """One operator in KEYS_FILE: under what it is measured."""

    kernel: str
    shape: str
    estimate: int
    calls: int


@dataclass(frozen=True)
class _Keys:
    """KEYS_FILE; None for an operator that is not kept."""

    compiler: str
    cmsis_nn: str
    operators: tuple[_CountedKernel | None, ...]


def record(profile: Profile, folder: str | Path, database: Database | None = None) -> int:
    """Store the operators' counts for the planner. Returns how many; 0 if the folder has no keys.

    Blocks of one kernel and shape are stored as their mean. If an operator's blocks differ, nothing
    is stored for it (`thimble compile --tune` times each by itself).
    """
    file = Path(folder) / KEYS_FILE
    if not file.exists():
        return 0
    read = record_of(_Keys, read_json(file), str(file))
    build = Build(read.compiler, read.cmsis_nn)
    if len(read.operators) != len(profile.operators):
        raise InputError(f"{file} is of another model: compile again")
    rows, basis = [], basis_of(find_board(profile.board))
    for number, (part, entry) in enumerate(zip(profile.operators, read.operators, strict=True)):
        if entry is not None:
            if entry.calls < 1:
                raise InputError(f"{file}: operators[{number}]: calls is {entry.calls}")
            key = Key(entry.kernel, entry.shape)
            counts = [round(count / entry.calls) for count in part.counts]
            rows.append(
                taken(profile.board, key, build, profile.unit, basis, counts, entry.estimate)
            )
    distinct = {row.key: row for row in rows}
    return (database or Database()).put(distinct.values())


def _inference(deployment: Deployment) -> int:
    if deployment.pattern(1) is not None:
        return deployment.run_pattern(1).count
    rng = np.random.default_rng(1)
    return deployment.run({end.name: end.random(rng) for end in deployment.inputs}).count


def _planned(folder: Path) -> dict[str, Any]:
    """Model and operators, by name, of the folder's plan."""
    file = folder / PLAN_FILE
    data, where = read_json(file), str(file)
    operators = {}
    for number, entry in enumerate(field_of(data, "operators", tuple[Any, ...], where)):
        at = f"{where}: operators[{number}]"
        operators[field_of(entry, "name", str, at)] = {
            "block": field_of(entry, "block", Any, at, ""),
            "macs": field_of(entry, "macs", int, at, 0),
            "moved_bytes": field_of(entry, "moved_bytes", int, at, 0),
        }
    return {"model": field_of(data, "model", str, where), "operators": operators}


def _part(
    name: str,
    kind: str,
    blocks: tuple[str, ...],
    counts: tuple[int, ...],
    planned: dict[str, Any],
) -> Part:
    entries = [planned.get(block, {}) for block in blocks or (name,)]
    return Part(
        name=name,
        kind=kind,
        block=str(entries[0].get("block", "")),
        counts=counts,
        macs=sum(int(entry.get("macs", 0)) for entry in entries),
        moved_bytes=sum(int(entry.get("moved_bytes", 0)) for entry in entries),
        calls=len(entries),
    )

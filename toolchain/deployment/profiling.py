"""The operators of a compiled model, counted on its board in several runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low
from typing import Any

import numpy as np

from toolchain.boards import Board, boards
from toolchain.cost.basis import CYCLES, INSTRUCTIONS, Basis
from toolchain.cost.database import Database
from toolchain.cost.key import Build, Key
from toolchain.cycles.trace import Trace
from toolchain.deployment.folder import KEYS_FILE, PLAN_FILE, compiled_board
from toolchain.deployment.measurements import taken
from toolchain.deployment.modelled_time import ModelledTime, NoReader, Reader, find_reader
from toolchain.deployment.profile import Part, Profile
from toolchain.deployment.run import Deployment, deployed
from toolchain.deployment.stand_in import firmware_here
from toolchain.device.firmware import Firmware
from toolchain.device.patience import RUN_SECONDS
from toolchain.device.session import OperatorCount
from toolchain.errors import InputError
from toolchain.files.records import field_of, read_json
from toolchain.files.records import record as record_of
from toolchain.progress import Report, silent

DEFAULT_RUNS = 5


def profile_folder(
    folder: str | Path,
    port: str | None = None,
    runs: int = DEFAULT_RUNS,
    report: Report = silent,
    read_as: str = "",
) -> Profile:
    """Run a compiled folder `runs` times on the same pseudo-random input, and count.

    `read_as`: the name of a board or chip, as which the trace of an emulated board is read. Raises
    InputError for a folder without a firmware that counts and as `find_reader` does, LinkError
    where the board fails.
    """
    (profile,) = profile_readings(folder, [read_as], port, runs, report)
    return profile


def profile_readings(
    folder: str | Path,
    names: Sequence[str],
    port: str | None = None,
    runs: int = DEFAULT_RUNS,
    report: Report = silent,
    limit_seconds: float = RUN_SECONDS,
) -> tuple[Profile, ...]:
    """As `profile_folder`, read as each of the named boards and chips ('': the board itself).

    Boards and chips with equal caches share the runs. `limit_seconds`: of one inference.
    """
    if runs < 1:
        raise InputError(f"{runs} runs measure nothing")
    with firmware_here(folder, port, report) as firmware:
        if firmware is None:
            raise InputError(
                "nothing is counted on this machine: compile for a board, or one in QEMU"
            )
        return _readings(Path(folder), firmware, names, port, runs, report, limit_seconds)


def _readings(
    path: Path,
    firmware: Firmware,
    names: Sequence[str],
    port: str | None,
    runs: int,
    report: Report,
    limit_seconds: float,
) -> tuple[Profile, ...]:
    """Profiles of a firmware of the folder `path`: its own, or one that stands for it."""
    board, compiled_for = firmware.board, compiled_board(path).name
    readers = [_reader(firmware, port, name, compiled_for) for name in names]
    traced: dict[tuple[str, ...], tuple[Counted, Trace]] = {}
    profiles = []
    for reader in readers:
        report("starting")
        if isinstance(reader, NoReader):
            with deployed(path, port, None, None, limit_seconds, firmware) as deployment:
                counted = count_runs(deployment, path, board, runs, report)
            profiles.append(counted_profile(path, board, counted, reader.reason))
            continue
        wanted = reader.memory.plugin_arguments()
        if wanted not in traced:
            with deployed(path, port, reader, None, limit_seconds, firmware) as deployment:
                counted = count_runs(deployment, path, board, runs, report)
                traced[wanted] = counted, deployment.trace()
        counted, trace = traced[wanted]
        profiles.append(modelled_profile(path, board, counted, reader.read(trace)))
    return tuple(profiles)


def _reader(
    firmware: Firmware, port: str | None, read_as: str, compiled_for: str
) -> Reader | NoReader:
    """As `find_reader`. A board in place of `compiled_for` has its memories, bank by bank, and is
    read as that board."""
    if firmware.board.name == compiled_for or read_as not in ("", compiled_for):
        return find_reader(firmware, port, read_as)
    reader = find_reader(firmware, port)
    if isinstance(reader, NoReader):
        return reader
    return replace(reader, target=replace(reader.target, name=compiled_for))


def profile_deployment(
    deployment: Deployment, folder: Path, board: Board, runs: int, report: Report = silent
) -> Profile:
    """As `profile_folder`, for a model that is already running: in cycles if it is traced."""
    counted = count_runs(deployment, folder, board, runs, report)
    modelled = deployment.modelled_time()
    if modelled is None:
        return counted_profile(folder, board, counted)
    latest = replace(modelled, runs=modelled.runs[-runs:])
    return modelled_profile(folder, board, counted, latest)


@dataclass(frozen=True)
class Counted:
    """Counts of some runs by a board's own counter: the whole, and each operator, in `unit`, at the
    clock that the board has set."""

    unit: str
    totals: tuple[int, ...]
    operators: tuple[tuple[OperatorCount, ...], ...]
    clock_hz: int


def count_runs(
    deployment: Deployment, folder: Path, board: Board, runs: int, report: Report = silent
) -> Counted:
    """Run the same pseudo-random input `runs` times."""
    totals: list[int] = []
    operators: list[tuple[OperatorCount, ...]] = []
    for run in range(runs):
        report(f"running on {board.name}", run, runs)
        totals.append(_inference(deployment))
        operators.append(deployment.operator_counts())
        if not operators[-1]:
            raise InputError(f"the firmware in {folder} was built without counters: compile again")
    unit = board.counter.unit if board.counter else CYCLES
    return Counted(unit, tuple(totals), tuple(operators), deployment.clock_hz)


def counted_profile(folder: Path, board: Board, counted: Counted, no_cycles: str = "") -> Profile:
    """The profile in the counter's unit: cycles on silicon. `no_cycles`: why there are only
    instructions."""
    emulated = counted.unit == INSTRUCTIONS
    counts = [[op.count for op in run] for run in counted.operators]
    planned = _planned(folder)
    return Profile(
        model=str(planned["model"]),
        board=board.name,
        ran_on=board.name,
        unit=counted.unit,
        basis=Basis.TRACE if emulated else Basis.MEASURED,
        clock_hz=counted.clock_hz,
        totals=counted.totals,
        operators=_parts(planned["operators"], counted, counts),
        instructions=median_low(counted.totals) if emulated else None,
        no_cycles=no_cycles,
    )


def modelled_profile(
    folder: Path, board: Board, counted: Counted, modelled: ModelledTime
) -> Profile:
    """The profile in cycles of the chip as which the trace of these runs was read."""
    planned = _planned(folder)
    return Profile(
        model=str(planned["model"]),
        board=modelled.target,
        ran_on=board.name,
        unit=CYCLES,
        basis=Basis.TRACE,
        clock_hz=modelled.clock_hz,
        totals=tuple(run.total for run in modelled.runs),
        operators=_parts(planned["operators"], counted, [run.operators for run in modelled.runs]),
        instructions=median_low(counted.totals),
        functions=modelled.functions,
        reading=modelled.reading,
    )


@dataclass(frozen=True)
class _CountedKernel:
    """One operator in KEYS_FILE: the key under which it is measured."""

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
    """Store the operators' counts for the planner. Returns how many; 0 if the folder has no keys,
    or the profile is that of a chip without a board.

    Blocks of one kernel and shape are stored as their mean. If an operator's blocks differ, nothing
    is stored for it (`thimble compile --tune` times each by itself).
    """
    file = Path(folder) / KEYS_FILE
    if profile.board not in boards() or not file.exists():
        return 0
    read = record_of(_Keys, read_json(file), str(file))
    build = Build(read.compiler, read.cmsis_nn)
    if len(read.operators) != len(profile.operators):
        raise InputError(f"{file} is of another model: compile again")
    rows = []
    for number, (part, entry) in enumerate(zip(profile.operators, read.operators, strict=True)):
        if entry is not None:
            if entry.calls < 1:
                raise InputError(f"{file}: operators[{number}]: calls is {entry.calls}")
            key = Key(entry.kernel, entry.shape)
            counts = [round(count / entry.calls) for count in part.counts]
            unit, basis = profile.unit, profile.basis
            rows.append(taken(profile.board, key, build, unit, basis, counts, entry.estimate))
    distinct = {row.key: row for row in rows}
    return (database or Database()).put(distinct.values())


def _inference(deployment: Deployment) -> int:
    if deployment.pattern(1) is not None:
        return deployment.run_pattern(1).count
    return deployment.run(deployment.random(np.random.default_rng(1))).count


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


def _parts(
    planned: Mapping[str, Any], counted: Counted, counts: Sequence[Sequence[int]]
) -> tuple[Part, ...]:
    """The part of each operator; `counts` are per run and operator."""
    emulated = counted.unit == INSTRUCTIONS
    return tuple(
        _part(
            planned,
            op,
            tuple(run[i] for run in counts),
            median_low([run[i].count for run in counted.operators]) if emulated else None,
        )
        for i, op in enumerate(counted.operators[0])
    )


def _part(
    planned: Mapping[str, Any], op: OperatorCount, counts: tuple[int, ...], instructions: int | None
) -> Part:
    entries = [planned.get(block, {}) for block in op.blocks or (op.name,)]
    return Part(
        name=op.name,
        kind=op.kind,
        block=str(entries[0].get("block", "")),
        counts=counts,
        macs=sum(int(entry.get("macs", 0)) for entry in entries),
        moved_bytes=sum(int(entry.get("moved_bytes", 0)) for entry in entries),
        calls=len(entries),
        instructions=instructions,
    )

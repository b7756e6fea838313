"""`thimble profile`: the time of each operator, measured on the board."""

from __future__ import annotations

import json as jsonlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from toolchain.cli import _completion as completion
from toolchain.cli._console import note_stand_in, output_console, progress
from toolchain.cli._groups import argument, grouped, option, without
from toolchain.cli._options import BoardOption, CmsisNnOption, LineOptions, named_board
from toolchain.cli._output import Output, tell_json, write_json
from toolchain.cli._page import profiled_findings, write_page
from toolchain.cli._profiles import print_comparison, print_profile
from toolchain.cost.basis import CYCLES
from toolchain.cycles.reading import hot_loops
from toolchain.deployment.folder import compiled_board
from toolchain.deployment.profile import profile_json
from toolchain.deployment.profiling import DEFAULT_RUNS, profile_readings, record
from toolchain.device.session import open_board
from toolchain.errors import InputError
from toolchain.page.build import build
from toolchain.report.annotate import annotated, annotated_json
from toolchain.timing.kernel_timing import Timing, Wire, read_kernels, time_kernels

_MEASURED = "its cycles are measured on the board"


@dataclass(frozen=True)
class KernelOptions:
    """Whether and how each kernel is timed separately."""

    kernels: bool = option(
        False,
        "DIR is a MODEL or a JSON file of SHAPES: time each of its kernels separately on "
        "--board, and store the measurements for the planner.",
    )
    board: BoardOption = ""
    again: bool = option(False, "With --kernels: measure everything again.")
    flash: bool = option(
        True, "With --kernels on a real board: flash the kernels' firmware.", "--flash/--no-flash"
    )


@grouped
def command(
    folder: Path = argument(
        "DIR", "Folder of `thimble compile`; with --kernels a model or shapes."
    ),
    *,
    line: LineOptions,
    runs: int = option(DEFAULT_RUNS, "Number of runs; median and spread are shown.", least=1),
    separate: KernelOptions,
    read_as: list[str] | None = option(
        None,
        "Model the trace of an emulated board as this board or chip: its core, clock, "
        "memories and caches. May be repeated.",
        "--as",
        unit="BOARD|CHIP",
        complete=completion.targets,
    ),
    annotate: int | None = option(
        None,
        "Print the N hottest loops (default 5), with cycles beside each instruction.",
        unit="[N]",
        least=1,
    ),
    cmsis_nn: CmsisNnOption = None,
    output: Annotated[Output, without("fail_on")],
) -> None:
    """Time each operator and function of a compiled model, in several runs on its board.

    On silicon the cycles are measured. On an emulated board they are modelled from a trace of the
    instructions that QEMU executed, by the timing of the core and the wait states of its memories.
    The exact number of instructions stands beside them (alone if nothing can be traced; a line says
    why). A real board that is not here is replaced by an emulated one with its core, clock and
    memories: a line says so. The cycles are stored for the planner, those of --as BOARD for that
    board.

    With --kernels, one small firmware holds every kernel of a model and times each on request. Each
    figure goes to the database of `thimble cost` at once, so that a pulled cable loses nothing.
    `thimble profile --kernels model.tflite -b mps2-an500 --as nucleo-h743zi` gives the times of a
    board that you do not have.

    Example: `thimble profile out --as nucleo-h743zi --annotate 3`
    """
    if separate.kernels:
        if output.html:
            raise InputError("--html shows a compiled model: leave out --kernels")
        if annotate or len(read_as or ()) > 1:
            raise InputError("with --kernels, --annotate does not work, and --as takes one board")
        chip = "".join(read_as or ())
        _kernels(folder, separate, chip, line, runs, cmsis_nn, output.json)
        return
    with progress() as step:
        profiles = profile_readings(folder, read_as or [""], line.port, runs, step, line.timeout)
        for profile in profiles:
            record(profile, folder)
    note_stand_in(compiled_board(folder).name, profiles[0].ran_on)
    names = {i: part.name for i, part in enumerate(profiles[0].operators)}
    loops = [hot_loops(p.reading, annotate) if p.reading and annotate else () for p in profiles]
    if annotate and not any(p.reading for p in profiles):
        raise InputError(f"--annotate needs a trace: {profiles[0].no_cycles or _MEASURED}")
    if output.json:
        readings = [
            {**profile_json(profile), "loops": annotated_json(hottest, names)}
            for profile, hottest in zip(profiles, loops, strict=True)
        ]
        several = {"readings": readings} if len(readings) > 1 else {}
        write_json(output.json, {**readings[0], **several})
    if output.html:
        write_page(output.html, [build(hottest) for hottest in profiled_findings(folder, profiles)])
    if not output.has_tables:
        return
    console = output_console()
    for profile, hottest in zip(profiles, loops, strict=True):
        print_profile(console, profile)
        if hottest:
            text = annotated(hottest, names)
            console.say(text, whole=True)
    if len(profiles) > 1:
        print_comparison(console, profiles)


def _kernels(
    source: Path,
    asked: KernelOptions,
    read_as: str,
    line: LineOptions,
    runs: int,
    cmsis_nn: Path | None,
    json: str | None,
) -> None:
    board = named_board(asked.board)
    with progress() as step:
        kernels_to_time = read_kernels(source, read_as or board)
        opener = partial(open_board, limit_seconds=line.timeout)
        timing = time_kernels(
            kernels_to_time,
            board,
            read_as=read_as,
            wire=Wire(line.port, asked.flash, opener),
            runs=runs,
            again=asked.again,
            cmsis_nn_folder=cmsis_nn,
            report=step,
        )
    if not tell_json(json, _timing_json(timing)):
        return
    console = output_console()
    for measured in timing.measured:
        console.say(
            f"{measured.count:>12,} {timing.unit}  {measured.key.kernel}  {measured.key.shape}",
            whole=True,
        )
    how = timing.basis.text if timing.unit == CYCLES else "counted"
    console.print(
        f"{len(timing.measured)} kernels timed on {timing.board} in {timing.unit}, {how}; "
        f"{timing.known} known already, {len(timing.skipped)} without code of their own or too big "
        "for the board."
    )
    if timing.no_cycles:
        console.say(f"No cycles: {timing.no_cycles}.")


def _timing_json(timing: Timing) -> dict[str, Any]:
    return {
        "board": timing.board,
        "unit": timing.unit,
        "basis": timing.basis.value,
        "no_cycles": timing.no_cycles,
        "known": timing.known,
        "skipped": list(timing.skipped),
        "measured": [jsonlib.loads(entry.to_json()) for entry in timing.measured],
    }

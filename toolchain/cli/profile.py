"""`thimble profile`: the time of each operator, measured on the board."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from toolchain.cli._console import output_console, progress
from toolchain.cli._json import JsonOption, write_json
from toolchain.cli._options import BoardOption, CmsisNnOption, PortOption
from toolchain.cli._profiles import print_profile, profile_json
from toolchain.deployment.profiling import DEFAULT_RUNS, profile_folder, record
from toolchain.planner import DEFAULT_BOARD
from toolchain.timing.kernel_timing import Timing, read_kernels, time_kernels


def command(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder of `thimble compile`; with --kernels a model or shapes."
        ),
    ],
    port: PortOption = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs; median and spread are shown.")] = (
        DEFAULT_RUNS
    ),
    kernels: Annotated[
        bool,
        typer.Option(
            "--kernels",
            help="DIR is a MODEL or a JSON file of SHAPES: time each of its kernels separately on "
            "--board, and store the measurements for the planner.",
        ),
    ] = False,
    board: BoardOption = DEFAULT_BOARD,
    again: Annotated[
        bool, typer.Option("--again", help="With --kernels: measure everything again.")
    ] = False,
    flash: Annotated[
        bool,
        typer.Option(
            "--flash/--no-flash",
            help="With --kernels on a real board: flash the kernels' firmware.",
        ),
    ] = True,
    cmsis_nn: CmsisNnOption = None,
    json: JsonOption = None,
) -> None:
    """Count each operator of a compiled model on its board (or in QEMU), in several runs.

    The counts are cycles on silicon and exact instructions in QEMU; they are stored for the
    planner. With --kernels, one small firmware holds every kernel of a model and times each on
    request. Each measurement goes to the database of `thimble cost` at once, so that a pulled cable
    loses nothing.

    Example: `thimble profile out --runs 5`
    """
    if kernels:
        _kernels(folder, board, port, runs, again, flash, cmsis_nn, json)
        return
    with progress() as step:
        profile = profile_folder(folder, port, runs, step)
        record(profile, folder)
    if json:
        write_json(json, profile_json(profile))
    if json != "-":
        print_profile(output_console(), profile)


def _kernels(
    source: Path,
    board: str,
    port: str | None,
    runs: int,
    again: bool,
    flash: bool,
    cmsis_nn: Path | None,
    json: str | None,
) -> None:
    with progress() as step:
        found = read_kernels(source, board)
        timing = time_kernels(
            found, board, port=port, runs=runs, again=again, flash=flash,
            cmsis_nn_folder=cmsis_nn, report=step,
        )  # fmt: skip
    if json:
        write_json(json, _timing_json(timing))
    if json == "-":
        return
    console = output_console()
    for measured in timing.measured:
        console.print(
            f"{measured.count:>12,} {timing.unit}  {measured.key.kernel}  {measured.key.shape}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    console.print(
        f"{len(timing.measured)} kernels measured on {board}, {timing.known} known already, "
        f"{len(timing.skipped)} without code of their own or too big for the board."
    )


def _timing_json(timing: Timing) -> dict[str, Any]:
    return {
        "board": timing.board,
        "unit": timing.unit,
        "known": timing.known,
        "skipped": list(timing.skipped),
        "measured": [jsonlib.loads(entry.to_json()) for entry in timing.measured],
    }

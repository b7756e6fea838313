"""`thimble profile`: the time of each operator, measured on the board."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from toolchain.cli._console import output_console, progress
from toolchain.cli._json import JsonOption, write_json
from toolchain.cli._options import BoardOption, CmsisNnOption, PortOption
from toolchain.deployment.profiling import DEFAULT_RUNS, Part, Profile, profile_folder, record
from toolchain.planner import DEFAULT_BOARD
from toolchain.report.profile import Row, flame, profile_table
from toolchain.report.text import share
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
        _print(profile)


def profile_json(profile: Profile) -> dict[str, Any]:
    """Counts are medians; `counts` has every run. `calls`: more than 1 if it runs in blocks."""

    def part(entry: Part) -> dict[str, Any]:
        return {
            "name": entry.name,
            "kind": entry.kind,
            "block": entry.block,
            "count": entry.count,
            "spread": entry.spread,
            "calls": entry.calls,
            "counts": list(entry.counts),
            "milliseconds": profile.milliseconds(entry.count),
            "share": entry.count / profile.total if profile.total else 0.0,
            "macs": entry.macs,
            "moved_bytes": entry.moved_bytes,
        }

    return {
        "model": profile.model,
        "board": profile.board,
        "unit": profile.unit,
        "runs": len(profile.totals),
        "total": profile.total,
        "spread": profile.spread,
        "totals": list(profile.totals),
        "milliseconds": profile.milliseconds(profile.total),
        "outside": profile.outside,
        "operators": [part(entry) for entry in profile.operators],
        "kinds": [part(entry) for entry in profile.by_kind()],
        "blocks": [part(entry) for entry in profile.by_block()],
    }


def _print(profile: Profile) -> None:
    console = output_console()

    def rows(parts: Sequence[Part]) -> list[Row]:
        return [
            Row(
                name=p.name,
                kind=f"{p.kind} x{p.calls}" if p.calls > 1 else p.kind,
                count=p.count,
                spread=p.spread,
                time=profile.milliseconds(p.count),
                macs=p.macs,
                moved_bytes=p.moved_bytes,
            )
            for p in parts
        ]

    total, unit = profile.total, profile.unit
    listed = rows(profile.operators)
    console.print(profile_table("per operator", listed, total, unit, kinds=True))
    console.print(profile_table("per block", rows(profile.by_block()), total, unit, kinds=False))
    console.print(profile_table("per kind", rows(profile.by_kind()), total, unit, kinds=False))
    console.print("[bold]the whole, its blocks, their operators[/] (width is share)")
    console.print(
        flame(
            [
                [(profile.model, total)],
                [(part.block, part.count) for part in profile.by_block()],
                [(part.kind, part.count) for part in profile.operators],
            ]
        )
    )
    time = profile.milliseconds(total)
    console.print(
        f"{profile.model} on {profile.board}: {total:,} {unit}"
        + (f" ({time:.2f} ms)" if time is not None else "")
        + f", median of {len(profile.totals)} runs, spread {profile.spread:,}; "
        f"{share(max(profile.outside, 0), total)} outside the operators."
    )


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

"""A profile as tables and a picture on the console."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from toolchain.deployment.profile import Function, Part, Profile
from toolchain.report.profile import (
    Column,
    Row,
    comparison_table,
    flame,
    function_table,
    profile_table,
)
from toolchain.report.text import share
from toolchain.report.time import energy_text, time_text

_FUNCTIONS_SHOWN = 15
_WIDEST_PICTURE = 100


def print_profile(console: Console, profile: Profile) -> None:
    """Tables by operator, block, kind and function, a picture, and the whole in a sentence."""
    total, unit = profile.total, profile.unit
    for title, parts, kinds in (
        ("per operator", profile.operators, True),
        ("per block", profile.by_block(), False),
        ("per kind", profile.by_kind(), False),
    ):
        console.print(profile_table(title, _rows(profile, parts), total, unit, kinds=kinds))
    if profile.functions:
        shown = profile.functions[:_FUNCTIONS_SHOWN]
        console.print(function_table([_row(profile, one) for one in shown], total, unit))
        if len(profile.functions) > len(shown):
            console.print(f"... and {len(profile.functions) - len(shown)} more; --json lists them")
    console.print("[bold]the whole, its blocks, their operators[/] (width is share)")
    console.print(
        flame(
            [
                [(profile.model, total)],
                [(part.block, part.count) for part in profile.by_block()],
                [(part.kind, part.count) for part in profile.operators],
            ],
            min(_WIDEST_PICTURE, console.width),
        )
    )
    for line in whole_lines(profile):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_comparison(console: Console, profiles: Sequence[Profile]) -> None:
    """One run read as several chips, side by side."""
    names = [part.name for part in profiles[0].operators]
    columns = [
        Column(
            name=profile.board,
            counts=[part.count for part in profile.operators],
            total=profile.total,
            time_ms=profile.milliseconds(profile.total),
        )
        for profile in profiles
    ]
    console.print(comparison_table(names, columns, profiles[0].unit))
    for profile in profiles:
        console.print(whole_lines(profile)[0], markup=False, highlight=False, soft_wrap=True)


def whole_lines(profile: Profile) -> list[str]:
    """The whole inference in a sentence, and why there are no cycles where there are none."""
    traced = ""
    if profile.instructions is not None and profile.unit != "instructions":
        traced = f" of {profile.instructions:,} instructions on {profile.ran_on} in QEMU"
    text = time_text(profile.total, profile.unit, profile.basis, profile.clock_hz)
    lines = [
        f"{profile.model} on {profile.board}: {text}{traced}; "
        f"median of {len(profile.totals)} runs, spread {profile.spread:,}; "
        f"{share(max(profile.outside, 0), profile.total)} outside the operators"
        f"{energy_text(profile.board, profile.total, profile.unit)}."
    ]
    if profile.no_cycles:
        lines.append(f"No cycles: {profile.no_cycles}.")
    return lines


def _rows(profile: Profile, parts: Sequence[Part]) -> list[Row]:
    return [
        _row(
            profile,
            part,
            kind=f"{part.kind} x{part.calls}" if part.calls > 1 else part.kind,
            spread=part.spread,
            macs=part.macs,
            moved_bytes=part.moved_bytes,
        )
        for part in parts
    ]


def _row(profile: Profile, one: Part | Function, **more: Any) -> Row:
    time_ms = profile.milliseconds(one.count)
    return Row(one.name, one.count, time_ms, one.instructions, **more)

"""Hot loops as text and as JSON: instructions with the cycles of an iteration beside each."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolchain.cycles.reading import HotLoop, Line
from toolchain.report.text import share

_WIDTH = 100
_MOST_TEXT = 44
_MOST_OPERATORS = 4


def annotated(loops: Sequence[HotLoop], names: Mapping[int, str]) -> str:
    """The loops as plain text, most cycles first.

    `names`: of operators by index. Each instruction has its address, how often it ran, and for one
    iteration its cycles in the core and those that it waits for instructions and data.
    """
    return "\n".join(line for loop in loops for line in (*_loop(loop, names), ""))


def _operator(operator: int | None, names: Mapping[int, str]) -> str:
    if operator is None:
        return "what is outside of operators"
    return names.get(operator, f"operator {operator}")


def _shares(loop: HotLoop, names: Mapping[int, str]) -> str:
    """The operators in which the loop takes most cycles, and their shares."""
    parts = [f"{_operator(o, names)} {share(part, 1)}" for o, part in loop.operators.items()]
    left = len(parts) - _MOST_OPERATORS
    return ", ".join(parts[:_MOST_OPERATORS]) + (f" and {left} more" if left > 0 else "")


def _loop(loop: HotLoop, names: Mapping[int, str]) -> Iterator[str]:
    yield (
        f"{loop.function}, {loop.start:#x} to {loop.lines[-1].instruction.address:#x}: "
        f"{share(loop.share, 1)} of all cycles"
    )
    yield from textwrap.wrap(
        f"of {_shares(loop, names)}", _WIDTH, initial_indent="  ", subsequent_indent="  "
    )
    waits = loop.cycles.stalls / loop.iterations
    waiting = f", {waits:.2f} of them waiting for memories" if waits else ""
    yield (
        f"  {loop.iterations:,} iterations, begun {loop.entries:,} times, "
        f"{loop.cycles_per_iteration:.2f} cycles each{waiting}"
    )
    stalls = bool(loop.cycles.stalls)
    cycles = f"{'core':>7}  {'waits':>7}" if stalls else f"{'cycles':>7}"
    yield f"  {'address':>10}  {'instruction':{_MOST_TEXT}}  {'runs':>12}  {cycles}"
    for line in loop.lines:
        instruction = line.instruction
        row = (
            f"  {instruction.address:>#10x}  {_cut(instruction.text):{_MOST_TEXT}}  "
            f"{line.executions:>12,}  {line.cycles.core / loop.iterations:>7.2f}"
        )
        yield row + (f"  {line.cycles.stalls / loop.iterations:>7.2f}" if stalls else "")


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 3] + "..."


def annotated_json(loops: Sequence[HotLoop], names: Mapping[int, str]) -> list[dict[str, Any]]:
    """The loops for `--json`: cycles are those of all iterations."""
    return [
        {
            "function": loop.function,
            "start": loop.start,
            "end": loop.end,
            "entries": loop.entries,
            "iterations": loop.iterations,
            "cycles": round(loop.cycles.total, 1),
            "cycles_per_iteration": round(loop.cycles_per_iteration, 3),
            "share": round(loop.share, 4),
            "operators": [
                {"name": None if o is None else _operator(o, names), "share": round(part, 4)}
                for o, part in loop.operators.items()
            ],
            "instructions": [_line_json(line) for line in loop.lines],
        }
        for loop in loops
    ]


def _line_json(line: Line) -> dict[str, Any]:
    return {
        "address": line.instruction.address,
        "text": line.instruction.text,
        "executions": line.executions,
        "taken": line.taken,
        "core_cycles": round(line.cycles.core, 1),
        "fetch_cycles": round(line.cycles.fetch, 1),
        "data_cycles": round(line.cycles.data, 1),
    }

"""Build and place the points of a front in turn, until one meets the request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from toolchain.errors import DoesNotFitError, Overflow
from toolchain.memory.firmware_size import firmware_data_bytes, ram_bytes
from toolchain.memory.plan import Plan
from toolchain.partition.choice import Choice, LeastSlowdown, SmallestArena
from toolchain.partition.front import CTRL_C, Front, Point
from toolchain.progress import Report

Place = Callable[[Point], Plan]
"""A function that makes the plan of a point of the front."""


def smallest(
    whole: Plan, front: Front, place: Place, report: Report, max_slowdown: float | None = None
) -> Plan:
    """The plan with the smallest arena, split or not, that costs no more than `max_slowdown`."""
    best = replace(whole, search_stopped=front.stopped)
    for made in _placed(front, SmallestArena(front, max_slowdown), place, report):
        if made.arena.size_bytes < best.arena.size_bytes:
            best = made
    return best


def fitting(
    whole: Plan,
    front: Front,
    place: Place,
    report: Report,
    most_bytes: int,
    max_slowdown: float | None = None,
) -> Plan:
    """The plan with the least slowdown whose arena, data and stack fit into `most_bytes` of RAM.

    Raises DoesNotFitError, with the RAM that is needed, if no way to split does.
    """
    best = replace(whole, search_stopped=front.stopped)
    choice = LeastSlowdown(front, most_bytes - firmware_data_bytes(whole), max_slowdown)
    for made in _placed(front, choice, place, report):
        if ram_bytes(made) <= most_bytes or ram_bytes(made) < ram_bytes(best):
            best = made
    if ram_bytes(best) <= most_bytes:
        return best
    slower = "" if max_slowdown is None else f" at a slowdown of at most {max_slowdown:.1%}"
    stopped = f" until the search was stopped {front.stopped}" if front.stopped else ""
    raise DoesNotFitError(
        f"{whole.graph.name} does not fit {most_bytes:,} bytes of RAM on {whole.board}"
        f"{slower}: the least that was found{stopped} is {ram_bytes(best):,} bytes "
        f"(arena {best.arena.size_bytes:,}, slowdown {best.slowdown:.1%}).",
        remedies=[
            f"--ram {-(-ram_bytes(best) // 1024)}K",
            *(() if max_slowdown is None else ("a larger --max-slowdown",)),
            *(("more --split-seconds",) if front.stopped else ()),
            "a smaller input",
        ],
        overflows=[Overflow("RAM", ram_bytes(best), most_bytes, is_flash=False)],
    )


def _placed(front: Front, choice: Choice, place: Place, report: Report) -> Iterator[Plan]:
    """The plans of the points that are chosen, in turn. Ctrl-C ends them, unless one ended the
    search already."""
    done = 0
    while (point := choice.next()) is not None:
        most = choice.most
        report(f"placing tensors of way {done + 1} of at most {most} to split", done, most)
        try:
            made = place(point)
        except KeyboardInterrupt:
            if front.stopped == CTRL_C or not done:
                raise
            return
        done += 1
        choice.learn(point, made.arena.size_bytes)
        yield made

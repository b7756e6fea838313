"""`--pareto` and `--choice`: choices of RAM, flash and time, and the plan of one.

Each row is a finished plan that no other is better than. The search for them reads no clock, so
that a choice is the same plan whenever it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from toolchain.errors import InputError
from toolchain.ir.about import About
from toolchain.ir.removed import RemovedChannels
from toolchain.memory.firmware_size import estimated_need
from toolchain.memory.plan import Plan
from toolchain.planning.front import Candidates
from toolchain.report.front import FrontRow
from toolchain.report.latency import Latency, predict_latency
from toolchain.report.splits import splits_of


@dataclass(frozen=True)
class Choices:
    """The plans of a model to choose from. `removed`, `about`: of the model, as plans have them."""

    candidates: Candidates
    removed: RemovedChannels
    about: About

    @cached_property
    def asked(self) -> Plan:
        """The plan that the options ask for. Raises DoesNotFitError where there is none, and
        InputError for a `--choice` that there is not.
        """
        number = self.candidates.options.choice
        return self._of_model(self.candidates.asked()) if number is None else self._plan(number)

    def _of_model(self, plan: Plan) -> Plan:
        return replace(plan, removed=self.removed, about=self.about)

    @cached_property
    def _timed(self) -> tuple[tuple[Plan, Latency], ...]:
        """All choices, the quickest first."""
        found = self.candidates.front()
        made = []
        for number, choice in enumerate(found):
            text = f"placing tensors of choice {number + 1} of {len(found)}"
            self.candidates.report(text, number, len(found))
            plan = self.candidates.finished(choice)
            made.append((plan, predict_latency(plan, self.candidates.costs)))
        figures = [_figures(plan, latency.total) for plan, latency in made]
        return tuple(made[at] for at in undominated(figures))

    def _plan(self, number: int) -> Plan:
        """The plan of the choice of that number, from 1. Raises InputError where there is none."""
        count = len(self._timed)
        if not 1 <= number <= count:
            raise InputError(
                f"--choice {number}: there are choices 1 to {count}; --pareto lists them"
            )
        return self._of_model(self._timed[number - 1][0])

    def rows(self) -> tuple[FrontRow, ...]:
        """The choices, each with the figures of its plan."""
        return tuple(
            FrontRow(
                choice=number,
                peak_bytes=plan.arena.size_bytes,
                lower_bound_bytes=plan.schedule.lower_bound_bytes,
                ram_bytes=estimated_need(plan).ram_bytes,
                copied_bytes=plan.copied.size_bytes,
                flash_bytes=estimated_need(plan).flash_bytes,
                slowdown=plan.slowdown,
                latency=latency,
                splits=splits_of(plan.graph),
            )
            for number, (plan, latency) in enumerate(self._timed, 1)
        )


def _figures(plan: Plan, count: int) -> tuple[int, int, int]:
    """Time, RAM without copies, which take what nothing else needs, and flash."""
    need = estimated_need(plan)
    return count, need.ram_bytes - plan.copied.size_bytes, need.flash_bytes


def undominated(figures: Sequence[tuple[int, ...]]) -> Iterator[int]:
    """The places of those that no other is as good as in everything, in order of their figures; of
    equals, the first.
    """
    for at in sorted(range(len(figures)), key=figures.__getitem__):
        row = figures[at]
        if not any(
            all(a <= b for a, b in zip(other, row, strict=True)) and (other != row or index < at)
            for index, other in enumerate(figures)
            if index != at
        ):
            yield at

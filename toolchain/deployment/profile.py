"""Profiles: the time of a compiled model, by operator and by function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

from toolchain.boards import naming
from toolchain.cost.basis import Basis, milliseconds
from toolchain.cycles.issue_bound import issue_bound
from toolchain.cycles.reading import Reading
from toolchain.files.notebook import Card, Told
from toolchain.report.time import microjoules

_SHOWN = 3
"""Operators on a card."""


@dataclass(frozen=True)
class Part:
    """An operator, or several together. `counts` has one count per run, in the profile's unit.

    `moved_bytes`: bytes of inputs, weights and outputs, each once. `calls`: how often it runs in
    one inference; more than once if it was split into blocks. `instructions`: of one inference;
    None on silicon, where nothing counts them.
    """

    name: str
    kind: str
    block: str
    counts: tuple[int, ...]
    macs: int
    moved_bytes: int
    calls: int = 1
    instructions: int | None = None

    @property
    def count(self) -> int:
        """The median of the runs."""
        return median_low(self.counts)

    @property
    def spread(self) -> int:
        """The largest count minus the smallest."""
        return max(self.counts) - min(self.counts)


@dataclass(frozen=True)
class Function:
    """A C function: its cycles and instructions in one inference, without those that it calls."""

    name: str
    count: int
    instructions: int


@dataclass(frozen=True, repr=False)
class Profile(Told):
    """Counts of a compiled model. `totals` has one count per whole inference.

    unit       'cycles'; 'instructions' where an emulated board's cycles cannot be modelled, and
               `no_cycles` says why
    clock_hz   converts cycles to time
    board      the board or chip whose time it is; `ran_on` is the one that ran the firmware
    functions  where the basis is a trace, most expensive first
    reading    of the last run, where the basis is a trace
    """

    model: str
    board: str
    ran_on: str
    unit: str
    basis: Basis
    clock_hz: int
    totals: tuple[int, ...]
    operators: tuple[Part, ...]
    instructions: int | None = None
    functions: tuple[Function, ...] = ()
    reading: Reading | None = None
    no_cycles: str = ""

    def card(self) -> Card:
        """The time of an inference, and the operators that take most of it."""
        time, whole = self.milliseconds(self.total), max(self.total, 1)
        said = f"{self.total:,} {self.unit}" + ("" if time is None else f", {time:.3f} ms")
        facts = [("inference", f"{said}, {self.basis.text}")]
        longest = sorted(self.operators, key=lambda part: -part.count)[:_SHOWN]
        facts += [
            (part.name, f"{part.count:,} {self.unit}, {part.count / whole:.1%}") for part in longest
        ]
        if self.ran_on != self.board:
            facts.append(("ran on", self.ran_on))
        return Card("Profile", f"{self.model} on {self.board}", tuple(facts))

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
        """Time of so many cycles; None for instructions, which have none."""
        return milliseconds(count, self.unit, self.clock_hz)

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
            instructions=_sum(part.instructions for part in group),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(summed, key=lambda part: -part.count))


def _sum(counts: Iterable[int | None]) -> int | None:
    """The sum of the counts; None if one of them is unknown."""
    known = list(counts)
    counted = [count for count in known if count is not None]
    return sum(counted) if len(counted) == len(known) else None


def _shared(values: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else f"{len(distinct)} different"


def profile_json(profile: Profile) -> dict[str, Any]:
    """The fields of `thimble profile --json`. Counts are medians; `counts` has every run. `calls`:
    more than 1 if an operator runs in blocks.

    `bound` of an operator: the least cycles in which the core can issue what it executed
    (`cycles.issue_bound`). `functions`: each without those that it calls; none where the basis is
    not a trace.
    """

    def part(entry: Part) -> dict[str, Any]:
        return {
            "name": entry.name,
            "kind": entry.kind,
            "block": entry.block,
            "count": entry.count,
            "instructions": entry.instructions,
            "spread": entry.spread,
            "calls": entry.calls,
            "counts": list(entry.counts),
            "milliseconds": profile.milliseconds(entry.count),
            "share": entry.count / profile.total if profile.total else 0.0,
            "macs": entry.macs,
            "moved_bytes": entry.moved_bytes,
        }

    def function(entry: Function) -> dict[str, Any]:
        return {
            "name": entry.name,
            "count": entry.count,
            "instructions": entry.instructions,
            "milliseconds": profile.milliseconds(entry.count),
            "share": entry.count / profile.total if profile.total else 0.0,
        }

    return {
        "model": profile.model,
        **naming(profile.board),
        "ran_on": profile.ran_on,
        "unit": profile.unit,
        "basis": profile.basis.value,
        "clock_hz": profile.clock_hz,
        "runs": len(profile.totals),
        "total": profile.total,
        "instructions": profile.instructions,
        "spread": profile.spread,
        "totals": list(profile.totals),
        "milliseconds": profile.milliseconds(profile.total),
        "estimated_microjoules": microjoules(profile.board, profile.total, profile.unit),
        "outside": profile.outside,
        "no_cycles": profile.no_cycles,
        "operators": [
            {**part(entry), "bound": bound}
            for entry, bound in zip(profile.operators, _bounds(profile), strict=True)
        ],
        "kinds": [part(entry) for entry in profile.by_kind()],
        "blocks": [part(entry) for entry in profile.by_block()],
        "functions": [function(entry) for entry in profile.functions],
    }


def _bounds(profile: Profile) -> list[int | None]:
    """The `bound` of each operator; None where the basis is not a trace."""
    reading = profile.reading
    if reading is None:
        return [None] * len(profile.operators)
    executed = [reading.operator(number).lines.values() for number in range(len(profile.operators))]
    return [issue_bound(lines, reading.core) for lines in executed]

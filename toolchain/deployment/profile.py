"""What a profile says: the time of a compiled model, by operator and by function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median_low

from toolchain.cost.basis import Basis, milliseconds
from toolchain.cycles.reading import Reading


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


@dataclass(frozen=True)
class Profile:
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
    """None if one of them is unknown."""
    known = list(counts)
    found = [count for count in known if count is not None]
    return sum(found) if len(found) == len(known) else None


def _shared(values: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else f"{len(distinct)} different"

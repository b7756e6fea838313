"""The content of a contact file, as JSON holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from toolchain.cost.basis import Basis


class Outcome(Enum):
    """How a step ended: all as expected, something to act on, or nothing tried."""

    OK = "ok"
    FINDING = "finding"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Result:
    """One step. `sentences`: what was found, the findings first, or why nothing was tried.
    `values`: figures behind the sentences, as JSON. `seconds`: what the step took.
    """

    step: str
    title: str
    outcome: Outcome
    sentences: tuple[str, ...]
    seconds: float
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """One operator on the board.

    `kind`: as `thimble ops` lists it. `kernel`, `shape`: the key of its measurements
    (`cost.key.Key`). `cold`: the first run after a reset, `warm`: the quicker of those after it,
    `predicted`: the formula's estimate, all in `unit`. `differing`: elements that are not the
    reference's.
    """

    kind: str
    kernel: str
    shape: str
    unit: str
    basis: Basis
    cold: int
    warm: int
    predicted: int
    elements: int
    differing: int


@dataclass(frozen=True)
class Access:
    """Accesses to one bank from empty caches, in units of the board's counter each.

    `first`: to a new line, `again`: to the same, `sequential`, `random`: reads of words; None for
    calls. `predicted_stall`: cycles by which `first` takes longer than `again`, by the board's
    file; None where that does not say. `parts`: reads of the bank that bring one line, each after
    the first waiting `burst_cycles` by that file. `lines`: that one access brings on average, of
    `first`, `sequential` and `random`, by the geometry of the cache.
    """

    bank: str
    what: str
    first: float
    again: float
    sequential: float | None = None
    random: float | None = None
    predicted_stall: int | None = None
    parts: int = 1
    burst_cycles: int = 0
    lines: tuple[float, float, float] | None = None

    @property
    def stall(self) -> float:
        """Cycles by which `first` takes longer than `again`."""
        return self.first - self.again


@dataclass(frozen=True)
class Pair:
    """Two instructions, many times in a row. `count`: of one pair, in units of the board's counter;
    `predicted`: cycles by the core's timing table, in memory that does not wait; None where the
    core has none.
    """

    name: str
    count: float
    predicted: float | None


@dataclass(frozen=True)
class Contact:
    """All of one visit. `clock_hz`: as the board's file has it. `compiler`, `cmsis_nn`: the build
    of the kernels (`cost.key.Build`). `made_at`: seconds since 1970.
    """

    format: str
    version: int
    thimble: str
    made_at: int
    board: str
    chip: str
    core: str
    clock_hz: int
    emulated: bool
    compiler: str
    cmsis_nn: str
    results: tuple[Result, ...]
    samples: tuple[Sample, ...] = ()
    accesses: tuple[Access, ...] = ()
    pairs: tuple[Pair, ...] = ()

    def of(self, outcome: Outcome) -> tuple[Result, ...]:
        """The steps that ended so."""
        return tuple(result for result in self.results if result.outcome is outcome)

"""Demands on a plan: an objective and how to look for it, or requests and deadlines; the answer of
a solver.

Objectives and baselines are called as the command line spells them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from toolchain.edgetpu.model.figures import EdgeTpuCost, HostCost, StageOf
from toolchain.errors import InputError

OBJECTIVES = ("params", "spill", "comm")
BASELINES = ("greedy", "contiguous")
DEFAULT = "period"
RATE_OBJECTIVES = ("mean", "worst")
"""Objectives for models with rates of requests, of latency; the first is the default."""
ORDERS = ("params,comm", "params,spill,comm", "spill,params,comm")
"""The three orders of the paper: (1)->(3), (1)->(2)->(3), (2)->(1)->(3)."""
_GAP = 1e-9
_UNITS_MS = {"ms": 1.0, "us": 1e-3, "s": 1e3}
MOST_RATE = 1e6
"""Limit on the requests a second of one model."""
_MOST_DEADLINE_MS = 1e9


@dataclass(frozen=True)
class Options:
    """How to plan. `slack`: how far an objective may worsen for later ones (0.05: 5%).

    `seconds`: most work of the solver for each objective, in seconds that it takes on one core.
    `times_ms`: measured time of each operator of the one model, instead of the cost model's.
    `host`: the host may run a stage, beside the sticks (`period` of one model).
    """

    objective: str = DEFAULT
    balance: str = "file"
    cost: EdgeTpuCost = field(default_factory=EdgeTpuCost)
    slack: float = 0.0
    same_stage_children: bool = False
    seconds: float = 60.0
    times_ms: tuple[float, ...] | None = None
    host: HostCost | None = None


Assigned = tuple[StageOf, ...]
"""The stage of each operator, by model."""


@dataclass(frozen=True)
class Proof:
    """Value and bound of one objective: bytes, for `period` milliseconds."""

    objective: str
    value: float
    bound: float

    @property
    def gap(self) -> float:
        """(value - bound) / value; 0 where the value is optimal."""
        return max(0.0, (self.value - self.bound) / self.value) if self.value else 0.0

    @property
    def optimal(self) -> bool:
        return self.gap <= _GAP


@dataclass(frozen=True)
class Assignment:
    """A plan, and what is proved of it: a proof for each objective, none for a baseline."""

    stage_of: Assigned
    proofs: tuple[Proof, ...]

    @property
    def proved_optimal(self) -> bool:
        """Whether every objective is proved optimal; False for a baseline."""
        return bool(self.proofs) and all(proof.optimal for proof in self.proofs)


@dataclass(frozen=True)
class Demand:
    """By model: requests a second, and the deadline in ms that 99% of them must meet, or None.

    `objective`: `mean`, the mean latency of all requests, or `worst`, the largest 99th percentile
    of any model.
    """

    names: tuple[str, ...]
    rates: tuple[float, ...]
    deadlines_ms: tuple[float | None, ...]
    objective: str = RATE_OBJECTIVES[0]

    @property
    def rates_a_ms(self) -> tuple[float, ...]:
        return tuple(rate / 1e3 for rate in self.rates)

    def scaled(self, factor: float, model: int | None = None) -> Demand:
        """With the rates of all models, or of one, times a factor."""
        rates = (
            rate * factor if model in (None, number) else rate
            for number, rate in enumerate(self.rates)
        )
        return replace(self, rates=tuple(rates))


def demand_of(names: Sequence[str], rates: str, deadlines: str | None, objective: str) -> Demand:
    """From the command line: `a=15,b=30` and `a=100ms,b=50ms`; one value alone is for every model.

    Raises InputError for what is no rate or time, for an unknown model and for one without a rate.
    """
    if objective not in RATE_OBJECTIVES:
        known = " or ".join(RATE_OBJECTIVES)
        raise InputError(f"--objective {objective}: with --rate, the objective is {known}")
    values = _values(names, rates, "--rate", _rate)
    missing = [name for name, rate in zip(names, values, strict=True) if rate is None]
    if missing:
        raise InputError(f"--rate {rates}: no rate for {', '.join(missing)}; write {missing[0]}=10")
    limits = [None] * len(names) if deadlines is None else None
    return Demand(
        tuple(names),
        tuple(rate for rate in values if rate is not None),
        tuple(limits or _values(names, deadlines or "", "--deadline", _time)),
        objective,
    )


def _rate(text: str, where: str) -> float:
    rate = _number(text, where)
    if not 0 < rate <= MOST_RATE:
        raise InputError(f"{where}: a rate is above 0, at most {MOST_RATE:,.0f} requests a second")
    return rate


def _time(text: str, where: str) -> float:
    """Milliseconds, of `100ms`, `0.1s`, or `100`."""
    value = text.strip()
    unit = next((unit for unit in _UNITS_MS if value.endswith(unit)), "")
    time_ms = _number(value.removesuffix(unit), where) * _UNITS_MS.get(unit, 1.0)
    if not 0 < time_ms <= _MOST_DEADLINE_MS:
        raise InputError(f"{where}: a deadline is a time above 0, as 100ms")
    return time_ms


def _number(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{where}: {text.strip()!r} is no number")
    return value


def _values(
    names: Sequence[str], text: str, option: str, read: Callable[[str, str], float]
) -> list[float | None]:
    by_name: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = part.strip().rpartition("=")
        if not equals:
            if "," in text:
                raise InputError(
                    f"{option} {text}: {part.strip()!r} names no model; write NAME=..."
                )
            return [read(value, f"{option} {text}")] * len(names)
        if name not in names:
            raise InputError(f"{option} {text}: no model {name!r}; there are {', '.join(names)}")
        if name in by_name:
            raise InputError(f"{option} {text}: {name} stands twice")
        by_name[name] = read(value, f"{option} {text}")
    return [by_name.get(name) for name in names]


def parse(text: str) -> tuple[str, ...]:
    """A list of objectives in order of priority. Raises InputError for anything else."""
    names = tuple(name.strip() for name in text.split(","))
    if names in ((DEFAULT,), *((baseline,) for baseline in BASELINES)):
        return names
    for name in names:
        if name in RATE_OBJECTIVES:
            raise InputError(
                f"objective {name!r} is of latency under a rate of requests: add --rate"
            )
        if name in (DEFAULT, *BASELINES):
            raise InputError(f"objective {name!r} stands alone; it cannot be part of a list")
        if name not in OBJECTIVES:
            known = ", ".join((*OBJECTIVES, DEFAULT, *BASELINES))
            raise InputError(f"there is no objective {name!r}; there are {known}")
    if len(set(names)) != len(names):
        raise InputError(f"an objective stands twice in {text!r}")
    return names

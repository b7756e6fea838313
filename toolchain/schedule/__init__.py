"""Schedulers, found by their files: each public module here has one `SCHEDULER`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Protocol

from toolchain.errors import InputError, did_you_mean
from toolchain.ir import MemoryProblem, Schedule

DEFAULT = "auto"


class Scheduler(Protocol):
    """Orders the operators of a memory problem.

    `schedule` returns a valid order (`ir.memory.check_order`) with its peak and a proved lower
    bound on every order's peak. `time_limit_seconds` limits counted work (`toolchain.search.Work`),
    not clock time. Given a budget, it may stop at the first order whose peak is at most
    `budget_bytes`. Equal input gives an equal order.
    """

    @property
    def name(self) -> str: ...

    def schedule(
        self,
        problem: MemoryProblem,
        time_limit_seconds: float | None = None,
        budget_bytes: int | None = None,
    ) -> Schedule: ...


@cache
def names() -> tuple[str, ...]:
    """Names of all schedulers, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_"))


def scheduler(name: str) -> Scheduler:
    """The scheduler of that name. Raises InputError, which lists the names, for any other."""
    if name not in names():
        known = f"{', '.join(names())}{did_you_mean(name, names())}"
        raise InputError(f"no scheduler is called {name!r}; there are: {known}")
    chosen: Scheduler = importlib.import_module(f"{__name__}.{name}").SCHEDULER
    return chosen

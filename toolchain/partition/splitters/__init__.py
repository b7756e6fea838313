"""Searches for ways to split, found by their files: each public module here has one `SPLITTER`."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Protocol

from toolchain.errors import InputError
from toolchain.partition.front import Front, Task, Watch

DEFAULT = "auto"


class Splitter(Protocol):
    """Searches for partition schemes that trade latency for memory.

    `front` returns the Pareto front of what was found. Equal input gives an equal front. Ctrl-C
    ends the search and keeps what was found by then.
    """

    @property
    def name(self) -> str: ...

    def front(self, task: Task, watch: Watch) -> Front: ...


@cache
def names() -> tuple[str, ...]:
    """Names of all splitters, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name[0] != "_"))


def splitter(name: str) -> Splitter:
    """The splitter of that name. Raises InputError, which lists the names, for any other."""
    if name not in names():
        raise InputError(f"no splitter is called {name!r}; there are: {', '.join(names())}")
    chosen: Splitter = importlib.import_module(f"{__name__}.{name}").SPLITTER
    return chosen

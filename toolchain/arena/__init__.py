"""Allocators, found by their files: each public module here (packages excepted) has one
`ALLOCATOR`.

The allocator's name is the module's file name with `_` written as `-`.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Protocol

from toolchain.errors import InputError, did_you_mean
from toolchain.ir import ArenaProblem, Placement

DEFAULT = "exact"


class Allocator(Protocol):
    """Gives every block a byte offset.

    `place` returns a valid placement (`ir.arena.check_placement`) with a proved lower bound on the
    size of every placement. `time_limit_seconds` limits counted work (`toolchain.search.Work`), not
    clock time. Given a capacity in bytes, a search may stop at the first placement within it. Equal
    input gives equal offsets.
    """

    @property
    def name(self) -> str: ...

    def place(
        self,
        problem: ArenaProblem,
        time_limit_seconds: float | None = None,
        capacity_bytes: int | None = None,
    ) -> Placement: ...


@cache
def names() -> tuple[str, ...]:
    """Names of all allocators, sorted."""
    modules = (m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg)
    return tuple(sorted(name.replace("_", "-") for name in modules if name[0] != "_"))


def allocator(name: str) -> Allocator:
    """The allocator of that name. Raises InputError, which lists the names, for any other."""
    if name not in names():
        known = f"{', '.join(names())}{did_you_mean(name, names())}"
        raise InputError(f"no allocator is called {name!r}; there are: {known}")
    module = importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
    chosen: Allocator = module.ALLOCATOR
    return chosen

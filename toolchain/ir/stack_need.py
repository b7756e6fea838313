"""The stack that a model's C functions take."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StackNeed:
    """A bound on the stack of any function of a model's header, callees included.

    size_bytes  the bound, a multiple of 8; None where there is none (`unbounded`).
    compiler    the compiler and the flags that it holds for.
    assembly    functions without figures of the compiler, bounded by their instructions.
    unknown     functions that are not in the bound: the caller's own, and what calls by address.
    unbounded   the functions for which there is no bound: recursive, or with a frame whose size
                is computed.
    """

    size_bytes: int | None
    compiler: str
    assembly: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    unbounded: tuple[str, ...] = ()

"""Splitting operators into blocks so that big networks fit: schemes, finer graphs, the search."""

from __future__ import annotations

from toolchain.partition.front import (
    CTRL_C,
    DEFAULT_SECONDS,
    MOST_CALLS,
    Front,
    Point,
    Task,
    Watch,
)
from toolchain.partition.program import Mode
from toolchain.partition.region import CannotSplitError
from toolchain.partition.scheme import Scheme, split, split_all
from toolchain.partition.single_outputs import single_outputs

__all__ = [
    "CTRL_C",
    "DEFAULT_SECONDS",
    "MOST_CALLS",
    "CannotSplitError",
    "Front",
    "Mode",
    "Point",
    "Scheme",
    "Task",
    "Watch",
    "single_outputs",
    "split",
    "split_all",
]

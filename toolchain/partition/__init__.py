"""Operators split into blocks, so that big networks fit: schemes, finer graphs, the search."""

from __future__ import annotations

from toolchain.partition.blocks import Mode
from toolchain.partition.region import CannotSplitError
from toolchain.partition.scheme import Scheme, split, split_all
from toolchain.partition.search import DEFAULT_SECONDS, Front, Point, pareto_front

__all__ = [
    "DEFAULT_SECONDS",
    "CannotSplitError",
    "Front",
    "Mode",
    "Point",
    "Scheme",
    "pareto_front",
    "split",
    "split_all",
]

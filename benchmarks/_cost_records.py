"""What is kept of a fit beside its coefficients, and which fits that makes old."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks._cost_fit import Floats
from benchmarks._cost_grid import drawn, families
from toolchain.boards import Core
from toolchain.cost.fitted import COEFFICIENTS, fit_of
from toolchain.cost.key import COPIES


@dataclass(frozen=True)
class Record:
    """Of one kernel on one core. `source`: digests of its C, in order. `shapes`: how many were
    traced. `held_out`: the mean error on those that took no part in the fit.
    """

    source: str
    shapes: int
    held_out: float

    @staticmethod
    def of(sources: Iterable[str], shapes: int, held_out: Floats) -> Record:
        """The record of so many shapes, with the errors on those that were held out."""
        mean = float(np.abs(held_out).mean()) if len(held_out) else 1.0
        return Record(" ".join(sorted(set(sources) - {""})), shapes, float(f"{mean:.2g}"))


def records_of(core: str) -> Mapping[str, Record]:
    """The records in a core's file of coefficients."""
    data = json.loads((COEFFICIENTS / f"{core}.json").read_text(encoding="utf-8"))
    return {name: Record(**each) for name, each in data.get("fits", {}).items()}


def sources_of(
    core: Core, seeds: Iterable[int], count: int | None = None
) -> Mapping[str, frozenset[str]]:
    """The digests of the C of each kernel that operators of the grid get on a core, `count`
    operators of each family.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for seed in seeds:
        for family in families():
            for one in drawn(family, seed, core, count) if family != COPIES else ():
                found[one.name].add(one.source)
    return {name: frozenset(filter(None, each)) for name, each in found.items()}


def old_fits(core: str, sources: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The kernels without coefficients on a core, or with those of other C."""
    fit, records = fit_of(Core(core)), records_of(core)
    return frozenset(
        name
        for name, each in sources.items()
        if name not in fit.kernels
        or name not in records
        or not each <= set(records[name].source.split())
    )

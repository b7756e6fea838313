"""Coefficients of loop counts by least squares, without negative ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops.kernel import Terms

Floats = NDArray[np.float64]

_SELDOM = ("slow", "float", "summed")
"""Parts of the names of terms that few models have. They are fitted last, with the others known."""


@dataclass(frozen=True)
class Point:
    """What a kernel's loops do at one shape, and what was counted.

    `scale`: that by which an error counts as 1: for cycles they themselves, for events the cycles
    of the whole kernel.
    """

    terms: Terms
    count: float
    scale: float


def fit(points: Sequence[Point]) -> dict[str, float]:
    """Coefficients of all terms that matter, by name: first of what every model has."""
    usual = [point for point in points if not any(map(point.terms.get, seldom(point.terms)))]
    base = least_squares(usual, {})
    return base | least_squares([point for point in points if point not in usual], base)


def seldom(names: Iterable[str]) -> list[str]:
    """Those terms that few models have."""
    return [name for name in names if any(word in name for word in _SELDOM)]


def least_squares(points: Sequence[Point], known: Mapping[str, float]) -> dict[str, float]:
    """Coefficients of all terms; where some are known, of those that few models have."""
    names = sorted({name for point in points for name in point.terms})
    names = seldom(names) if known else names
    if not points or not names:
        return {}
    scales = np.array([point.scale for point in points], float)
    amounts = np.array([[point.terms.get(name, 0.0) for name in names] for point in points])
    found = non_negative(amounts / scales[:, None], -errors(points, known))
    return {n: float(f"{c:.5g}") for n, c in zip(names, found, strict=True) if c > 0}


def non_negative(design: Floats, target: Floats) -> Floats:
    """Least squares without negative coefficients (Lawson and Hanson 1974, algorithm NNLS)."""
    size = np.maximum(np.linalg.norm(design, axis=0), np.finfo(float).tiny)
    design = design / size
    count = design.shape[1]
    used, found = np.zeros(count, bool), np.zeros(count)
    for _ in range(10 * count):
        slope = np.where(used, -np.inf, design.T @ (target - design @ found))
        if slope.max() < 1e-9:
            break
        used[slope.argmax()] = True
        while True:
            best = np.zeros(count)
            best[used] = np.linalg.lstsq(design[:, used], target, rcond=None)[0]
            wrong = used & (best <= 0)
            if not wrong.any():
                break
            share = np.min(found[wrong] / (found[wrong] - best[wrong]))
            found += share * (best - found)
            used &= found > 1e-12
            found[~used] = 0.0
        found = best
    result: Floats = found / size
    return result


def errors(points: Iterable[Point], each: Mapping[str, float]) -> Floats:
    """Predicted less counted, by the scale."""
    return np.array(
        [
            (sum(each.get(name, 0.0) * count for name, count in point.terms.items()) - point.count)
            / point.scale
            for point in points
        ]
    )

"""From the trace of an emulated run to the time that it would take on a chip."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.deployment.profile import Function


@dataclass(frozen=True)
class ModelledRun:
    """Cycles of one inference, and of each operator in it."""

    total: int
    operators: tuple[int, ...]


@dataclass(frozen=True)
class ModelledTime:
    """Inferences as `chip` (a board's or a chip's name) would run them at `clock_hz`.

    `functions`: of the last inference, most expensive first.
    """

    chip: str
    clock_hz: int
    runs: tuple[ModelledRun, ...]
    functions: tuple[Function, ...]

"""Timing models of cores. Each module in `cores/` that defines a `TIMING` is one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Protocol

from toolchain.cycles import cores
from toolchain.cycles.instruction import Instruction


class CoreTiming(Protocol):
    """Cycles that a core takes while its memories have no wait states.

    `name`: as `Core.name`. `source`: document, issue and section of the figures.
    """

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> str: ...

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        """The cycles that each instruction of a straight run adds.

        `repeats`: the run follows itself, as a loop's body does, so that what its end leaves in the
        pipeline meets its beginning; the run's last instruction then goes to its first. Cycles that
        a taken branch adds are not in it (`taken_cycles`).
        """
        ...

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        """The cycles that a branch adds when it is taken.

        `previous`: what ran before it. `target`: where it goes. None where that is not known.
        """
        ...

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        """The cycles that `block_cycles` takes off a load because it overlaps the load before it,
        and that it takes after all where the two go to different memories.
        """
        ...


@cache
def timings() -> Mapping[str, CoreTiming]:
    """Every timing model by the core's name, in alphabetical order."""
    models: dict[str, CoreTiming] = {}
    for module in sorted(pkgutil.iter_modules(cores.__path__), key=lambda m: m.name):
        timing = getattr(importlib.import_module(f"{cores.__name__}.{module.name}"), "TIMING", None)
        if timing is None:
            continue
        if timing.name.replace("-", "_") != module.name:
            raise ImportError(f"cycles/cores/{module.name}.py declares core {timing.name!r}")
        models[timing.name] = timing
    return MappingProxyType(models)


def timing_of(core_name: str) -> CoreTiming | None:
    """The timing model of a core; None where there is none."""
    return timings().get(core_name)

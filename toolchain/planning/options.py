"""How to plan: the options of `plan`, `compile` and similar commands."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from toolchain import arena, partition, schedule
from toolchain.boards import Board
from toolchain.errors import InputError
from toolchain.memory.firmware_size import ram_bytes
from toolchain.memory.plan import Plan
from toolchain.ops.preference import Preference, preference
from toolchain.partition import splitters

_SHARE, _SPEED_SHARE = 12, 15
"""Sixteenths of the flash. The size of code is an estimate, and firmware grows."""


class Optimise(StrEnum):
    """The values of `--optimise`.

    BALANCED  quicker kernels whose constants the flash holds with room to spare, in an arena that
              is no larger than that of the unsplit network without them.
    SPEED     the quickest kernels that flash and RAM hold; nothing is split that need not be.
    SIZE      the kernels with the least flash and scratch.
    """

    BALANCED = "balanced"
    SPEED = "speed"
    SIZE = "size"


def goal(name: str) -> Optimise:
    """The goal of that name. Raises InputError for an unknown one."""
    try:
        return Optimise(name)
    except ValueError:
        known = ", ".join(Optimise)
        raise InputError(f"--optimise {name!r} is unknown; there are: {known}") from None


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. Limits in seconds count work that takes about so long on one core.

    No clock changes a plan.

    time_limit_seconds  limit for the scheduler and for the allocator, each.
    rewrite      partition concatenations where that lowers the peak. Convolutions that sum in parts
                 take about three times the instructions.
    ram_bytes    split operators, if needed, until arena, data and stack fit into this RAM, at the
                 least cost.
    flash_bytes  flash for all code and constants. By default three quarters of the board's may be
                 spent on quicker kernels, 15 sixteenths with Optimise.SPEED.
    optimise     what to spend flash and RAM on.
    max_slowdown  split for the smallest arena that costs no more than this fraction of the
                 latency.
    splitter     the search for ways to split, limited by `split_seconds`.
    allow_float  accept models that compute in float32 throughout. Single float operators in a
                 quantised model are always accepted.
    kernels      whose kernels to take: CMSIS-NN's, Thimble's, or the quicker for each operator.
    dead_channels  remove channels that cannot change an output.
    one_bank     keep the arena in one piece, even if it then lies in a slow bank or fits none.
    """

    scheduler: str = schedule.DEFAULT
    allocator: str = arena.DEFAULT
    time_limit_seconds: float | None = None
    rewrite: bool = True
    ram_bytes: int | None = None
    max_slowdown: float | None = None
    flash_bytes: int | None = None
    optimise: Optimise = Optimise.BALANCED
    splitter: str = splitters.DEFAULT
    split_seconds: float = partition.DEFAULT_SECONDS
    one_bank: bool = False
    allow_float: bool = False
    kernels: Preference = Preference.AUTO
    dead_channels: bool = True

    def __post_init__(self) -> None:
        """A name such as "cmsis-nn" will do. Raises InputError for an unknown one."""
        object.__setattr__(self, "kernels", preference(self.kernels))
        object.__setattr__(self, "optimise", goal(self.optimise))

    @property
    def splits(self) -> bool:
        return self.ram_bytes is not None or self.max_slowdown is not None

    def flash_of(self, target: Board) -> int:
        """Bytes of flash that the firmware may take with quicker kernels."""
        if self.flash_bytes is not None:
            return self.flash_bytes
        speed = self.optimise is Optimise.SPEED
        return target.flash_bytes * (_SPEED_SHARE if speed else _SHARE) // 16

    def met_by(self, plan: Plan) -> bool:
        """Whether a plan needs no more RAM than `ram_bytes`."""
        return self.ram_bytes is not None and ram_bytes(plan) <= self.ram_bytes

"""How to plan: the options of `plan`, `compile` and similar commands."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain import arena, partition, schedule
from toolchain.memory.firmware_size import ram_bytes
from toolchain.memory.plan import Plan
from toolchain.ops.preference import Preference, preference
from toolchain.partition import splitters


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. Limits in seconds count work that takes about so long on one core.

    No clock changes a plan.

    time_limit_seconds  limit for the scheduler and for the allocator, each.
    rewrite      partition concatenations where that lowers the peak. Convolutions that sum in parts
                 take about three times the instructions.
    ram_bytes    split operators, if needed, until arena, data and stack fit into this RAM, at the
                 least cost.
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
    splitter: str = splitters.DEFAULT
    split_seconds: float = partition.DEFAULT_SECONDS
    one_bank: bool = False
    allow_float: bool = False
    kernels: Preference = Preference.AUTO
    dead_channels: bool = True

    def __post_init__(self) -> None:
        """A name such as "cmsis-nn" will do. Raises InputError for an unknown one."""
        object.__setattr__(self, "kernels", preference(self.kernels))

    @property
    def splits(self) -> bool:
        return self.ram_bytes is not None or self.max_slowdown is not None

    def met_by(self, plan: Plan) -> bool:
        """Whether a plan needs no more RAM than `ram_bytes`."""
        return self.ram_bytes is not None and ram_bytes(plan) <= self.ram_bytes

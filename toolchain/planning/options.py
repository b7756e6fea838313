"""How to plan: what the options of `plan`, `compile` and their like say."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain import arena, partition, schedule
from toolchain.memory.firmware_size import ram_bytes
from toolchain.memory.plan import Plan
from toolchain.partition import splitters


@dataclass(frozen=True)
class PlanOptions:
    """How to plan. `time_limit_seconds` bounds the scheduler and the allocator, each. Limits in
    seconds count work, which takes about so long on one core: no clock changes a plan.

    `rewrite`: partition concatenations where that lowers the peak; convolutions that sum in parts
    take about three times the instructions.
    `ram_bytes`: split operators, where that is needed, until arena, data and stack fit into so
    much RAM, at the least cost. `max_slowdown`: split them for the smallest arena that costs no
    more than this fraction of the latency. `splitter` searches for that, for at most
    `split_seconds`.
    `allow_float`: also models that compute in float32; without it islands of float alone.
    `one_bank`: keep the arena in one piece, even where it then lies in a slow bank or in none.
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

    @property
    def splits(self) -> bool:
        return self.ram_bytes is not None or self.max_slowdown is not None

    def met_by(self, plan: Plan) -> bool:
        """Whether a plan has no more RAM than is asked for."""
        return self.ram_bytes is not None and ram_bytes(plan) <= self.ram_bytes

"""Cortex-M0+: a pipeline of two stages."""

from __future__ import annotations

from toolchain.cycles.armv6m import Armv6M

TIMING = Armv6M(
    "cortex-m0plus",
    "Arm Cortex-M0+ Technical Reference Manual (DDI 0484C): table 3-1",
    refill_cycles=1,
    barrier_cycles=3,
)

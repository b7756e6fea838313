"""Cortex-M0: a pipeline of three stages."""

from __future__ import annotations

from toolchain.cycles.armv6m import Armv6M

TIMING = Armv6M(
    "cortex-m0",
    "Arm Cortex-M0 Technical Reference Manual (DDI 0432C): table 3-1",
    refill_cycles=2,
    barrier_cycles=4,
)

"""Cortex-M3, from Arm's Cortex-M3 Technical Reference Manual (100165_0201, r2p1)."""

from __future__ import annotations

from types import MappingProxyType

from toolchain.cycles.single_issue import Armv7MTiming

TIMING = Armv7MTiming(
    "cortex-m3",
    "Arm Cortex-M3 Technical Reference Manual (100165_0201): table 3-1 and 3.3.2",
    MappingProxyType(
        {
            **dict.fromkeys(("mla", "mls"), 2.0),
            # "3 to 5" and "4 to 7, early termination depending on the size of the source values":
            # short for factors below 65536 (DDI 0337E, 18.2). The 31-bit multipliers of
            # quantised kernels are above: the most.
            **dict.fromkeys(("smull", "umull"), 5.0),
            **dict.fromkeys(("smlal", "umlal"), 7.0),
            # "2 to 12", of operands that a trace does not have: the middle.
            **dict.fromkeys(("sdiv", "udiv"), 7.0),
            **dict.fromkeys(("tbb", "tbh"), 3.0),
            "isb": 2.0,
        }
    ),
)

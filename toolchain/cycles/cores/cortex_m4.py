"""Cortex-M4 and its FPU, from Arm's Cortex-M4 Technical Reference Manual (DDI 0439D, r0p1)."""

from __future__ import annotations

from types import MappingProxyType

from toolchain.cycles.single_issue import Armv7MTiming

TIMING = Armv7MTiming(
    "cortex-m4",
    "Arm Cortex-M4 Technical Reference Manual (DDI 0439D): tables 3-1 and 3-2, 3.3.2, table 7-1",
    MappingProxyType(
        {
            # "2 to 12 ... dependent on the values of the input operands", which a trace does not
            # have: the middle.
            **dict.fromkeys(("sdiv", "udiv"), 7.0),
            # 2 + P with the add that 3.3.2 counts: "at least two cycles for the load, one cycle
            # for the add, and three cycles for the pipeline reload".
            **dict.fromkeys(("tbb", "tbh"), 3.0),
            # 1 + B, "the minimum number of cycles is equivalent to a pipeline refill".
            "isb": 2.0,
            **dict.fromkeys(("vmla", "vmls", "vnmla", "vnmls"), 3.0),
            **dict.fromkeys(("vfma", "vfms", "vfnma", "vfnms"), 3.0),
            **dict.fromkeys(("vdiv", "vsqrt"), 14.0),
        }
    ),
)

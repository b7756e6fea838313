"""The struct with which kernels of int32 sums add the output's offset and clamp."""

from __future__ import annotations

from toolchain.ops.kernel import Struct


def requant(output_offset: int, low: int, high: int) -> Struct:
    """A `thimble_requant`: what is added to the scaled sum, and the range that the result is
    clamped to.
    """
    return Struct(
        "thimble_requant",
        {"output_offset": output_offset, "activation_min": low, "activation_max": high},
    )

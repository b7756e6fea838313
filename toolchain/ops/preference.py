"""Whose kernels to take: CMSIS-NN's, Thimble's, or for each operator those that are the quicker."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError, did_you_mean
from toolchain.ops.arithmetic.fixed_point import INT32_MAX


class Preference(StrEnum):
    """The values of `--kernels`.

    AUTO      for each operator the kernel that takes less time, as `OpSpec.select` says.
    CMSIS_NN  CMSIS-NN's function wherever it has one that takes the operator; Thimble's elsewhere.
    THIMBLE   Thimble's kernel wherever it has one; CMSIS-NN's elsewhere.
    """

    AUTO = "auto"
    CMSIS_NN = "cmsis-nn"
    THIMBLE = "thimble"


def preference(name: str) -> Preference:
    """The preference of that name. Raises InputError for an unknown one."""
    try:
        return Preference(name)
    except ValueError:
        known = f"{', '.join(Preference)}{did_you_mean(name, Preference)}"
        raise InputError(f"--kernels {name!r} is unknown; there are: {known}") from None


class NoKernelError(Exception):
    """CMSIS-NN has no function that takes this operator; the text says why."""


def require_int32(largest: NDArray[np.int64]) -> None:
    """Raise NoKernelError where sums, also on the way, exceed int32 in magnitude: CMSIS-NN adds
    signed integers, and C does not define what happens then. Thimble's kernels wrap.
    """
    if largest.max(initial=0) > INT32_MAX:
        raise NoKernelError(
            f"its sums of up to {largest.max():,} may wrap, which CMSIS-NN's signed sums do not "
            "define in C"
        )

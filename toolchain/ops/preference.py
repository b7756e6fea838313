"""Whose kernels to take: CMSIS-NN's, Thimble's, or for each operator those that are the quicker."""

from __future__ import annotations

from enum import StrEnum

from toolchain.errors import InputError


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
        known = ", ".join(Preference)
        raise InputError(f"--kernels {name!r} is unknown; there are: {known}") from None


class NoKernelError(Exception):
    """CMSIS-NN has no function that takes this operator; the text says why."""

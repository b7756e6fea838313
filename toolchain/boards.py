"""Boards: one folder each under `boards/`, described by its `board.toml`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """What kernels need to know of a processor core.

    `dsp`: Armv7E-M SIMD (SMLAD and friends); `mve`: Helium; `fpu`: single-precision float.
    """

    name: str
    dsp: bool = False
    mve: bool = False
    fpu: bool = False


HOST = Core("host")

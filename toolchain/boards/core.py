"""Processor cores, as far as kernels need to know them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """What kernels need to know about a processor core.

    `dsp`: Armv7E-M SIMD (SMLAD and similar). `mve`: Helium. `fpu`: single-precision float.
    `winograd`: kernels of convolutions by Winograd's algorithm are taken where they apply, with
    tiles of so many outputs along each side; 0: none. A caller sets it; no board's file does.
    """

    name: str
    dsp: bool = False
    mve: bool = False
    fpu: bool = False
    winograd: int = 0


HOST = Core("host", fpu=True)

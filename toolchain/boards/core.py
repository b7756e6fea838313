"""Processor cores, as far as kernels need to know them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Core:
    """A processor core, as far as kernels need to know it.

    `dsp`: Armv7E-M SIMD (SMLAD and similar). `mve`: Helium. `fpu`: single-precision float.
    """

    name: str
    dsp: bool = False
    mve: bool = False
    fpu: bool = False

    @property
    def served(self) -> str:
        """Cores that take code generated for this one, which have the same features; in words."""
        if self.mve:
            return "Cortex-M55 and M85 (Helium)"
        if self.dsp:
            return "Cortex-M4 and M7, and M33 with the DSP extension"
        arm = "Cortex-M0, M0+, M3, and M33 without the DSP extension"
        return "any processor, in plain C" if self.name == "host" else arm

    @property
    def multiplies_alone(self) -> bool:
        """Whether it is a microcontroller whose instructions have one product at a time."""
        return not (self.dsp or self.mve or self.name == "host")


HOST = Core("host", fpu=True)

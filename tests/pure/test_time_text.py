"""A count of time in words: its unit, its time at the clock, what it rests on."""

from __future__ import annotations

import pytest

from toolchain.cost.basis import Basis
from toolchain.report.time import time_text


@pytest.mark.parametrize(
    ("count", "unit", "basis", "said"),
    [
        (
            8_400_000,
            "cycles",
            Basis.TRACE,
            "8,400,000 cycles (50.00 ms at 168 MHz), modelled from a trace",
        ),
        (61_152, "cycles", Basis.MEASURED, "61,152 cycles (0.364 ms at 168 MHz), measured"),
        (61_152, "cycles", Basis.PREDICTED, "61,152 cycles (0.364 ms at 168 MHz), predicted"),
        (45_067, "instructions", Basis.TRACE, "45,067 instructions, counted"),
        (45_067, "instructions", Basis.PREDICTED, "45,067 instructions, predicted"),
    ],
)
def test_every_count_says_what_it_rests_on(count: int, unit: str, basis: Basis, said: str) -> None:
    assert time_text(count, unit, basis, 168_000_000) == said

"""A count of time in words: its unit, its time at the clock, what it rests on."""

from __future__ import annotations

import pytest

from toolchain.cost.basis import Basis
from toolchain.report.time import energy_text, microjoules, time_text


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


def test_energy_is_the_datasheet_s_current_times_the_time() -> None:
    """110 uA/MHz at 120 MHz and 3.3 V is 43.56 mW, for 12 million cycles 0.1 s."""
    assert microjoules("nucleo-l4r5zi", 12_000_000, "cycles") == pytest.approx(4356)
    assert microjoules("stm32l4r5", 12_000_000, "cycles") == pytest.approx(4356)
    said = "; about 4,356 uJ, estimated from the datasheet's current"
    assert energy_text("nucleo-l4r5zi", 12_000_000, "cycles") == said
    assert energy_text("stm32l4r5", 12_000, "cycles").startswith("; about 4.4 uJ")
    for target, unit in (("nucleo-l4r5zi", "instructions"), ("mps2-an386", "cycles")):
        assert energy_text(target, 12_000_000, unit) == ""

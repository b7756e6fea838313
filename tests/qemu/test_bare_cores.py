"""The C of cores without a board, on the emulated machines that stand for them."""

from __future__ import annotations

import pytest

from toolchain.deployment.verification import verify_model
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("core", "machine"),
    [
        pytest.param("cortex-m0", "mps2-an385-v6m", marks=pytest.mark.long),
        ("cortex-m4", "mps2-an386"),
        pytest.param("cortex-m85", "mps3-an547", marks=pytest.mark.long),
    ],
)
def test_a_core_is_verified_in_qemu(core: str, machine: str) -> None:
    """Cores whose machine has another core, or an FPU that their C must not use."""
    judged = verify_model(DIGITS, core, runs=1, options=PlanOptions(nearly_free=False))
    assert judged.passed and judged.differing == 0 and judged.elements == 10
    assert (judged.board, judged.ran_on) == (core, f"{machine}:{core}")

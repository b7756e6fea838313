"""Real models that do not fit a board unsplit, split until they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.deployment.verification import verify_model
from toolchain.errors import DoesNotFitError
from toolchain.memory.firmware_size import ram_bytes
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
FOMO = MODELS / "openmv_fomo_face_detection.tflite"

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason=f"no models at {MODELS}")


def test_a_model_runs_split_in_half_the_ram() -> None:
    """The least blocks that fit: under 5% more instructions, and no byte differs."""
    half = ram_bytes(plan_model(FOMO, "netduinoplus2", PlanOptions().unsplit)) // 2
    options = PlanOptions(ram_bytes=half)
    result = verify_model(FOMO, "netduinoplus2", runs=2, options=options)
    sizes = result.compiled.sizes
    assert sizes is not None
    assert sizes.ram_bytes <= half
    assert result.differing == 0
    assert 0 < result.compiled.plan.slowdown < 0.05


@pytest.mark.long
def test_slowdown_budget_gives_the_smallest_arena_within_it() -> None:
    whole = plan_model(FOMO, "mps2-an500", PlanOptions().unsplit)
    split = plan_model(FOMO, "mps2-an500", PlanOptions(max_slowdown=0.01))
    assert split.arena.size_bytes < whole.arena.size_bytes / 2
    assert split.slowdown <= 0.01


@pytest.mark.long
def test_too_little_ram_says_how_much_is_needed() -> None:
    with pytest.raises(DoesNotFitError, match=r"--ram \d+K") as caught:
        plan_model(FOMO, "netduinoplus2", PlanOptions(ram_bytes=30 * 1024))
    least = int(str(caught.value).split("--ram ")[1].split("K")[0])
    plan = plan_model(FOMO, "netduinoplus2", PlanOptions(ram_bytes=least * 1024))
    assert ram_bytes(plan) <= least * 1024

"""`--kernels cmsis-nn` from model file to bytes: what tflite-micro with CMSIS-NN computes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from toolchain.deployment.verification import verify_model
from toolchain.ops.preference import Preference
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
MODELS = ROOT.parent / "shared" / "models"
MLPERF_TINY = ("ad_fcae", "ic_resnet8", "kws_dscnn", "vww_mbv1_025_96")
ARMS = PlanOptions(kernels=Preference.CMSIS_NN)

needs_qemu = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def mlperf_tiny(name: str) -> Path:
    path = MODELS / f"mlperf_tiny_{name}_int8.tflite"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout, in ../shared/models")
    return path


@needs_qemu
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547"])
def test_a_model_on_arms_kernels_equals_litert(board: str) -> None:
    found = verify_model(DIGITS, board, runs=4, options=ARMS)
    assert found.passed
    assert not found.differing
    called = {f for op in found.compiled.plan.operators for f in op.functions}
    assert {"arm_convolve_s8", "arm_softmax_s8"} <= called


@needs_qemu
def test_bytes_that_arms_kernels_round_otherwise_count_as_differing() -> None:
    found = verify_model(mlperf_tiny("ad_fcae"), "mps2-an386", runs=1, options=ARMS)
    assert not found.passed
    assert 0 < found.differing < found.elements // 2
    assert found.max_difference <= 2
    assert all(op.inexact for op in found.compiled.plan.operators if op.functions)


@pytest.mark.parametrize("board", ["nucleo-l4r5zi", "nucleo-h7a3zi-q", "mps3-an547"])
@pytest.mark.parametrize("name", MLPERF_TINY)
def test_mlperf_tiny_runs_wholly_on_arms_kernels(name: str, board: str) -> None:
    """As tflite-micro with CMSIS-NN runs it, whose times on silicon are published."""
    plan = plan_model(mlperf_tiny(name), board, ARMS.unsplit)
    called = [op.functions for op in plan.operators if not op.is_view]
    assert called
    assert all(function.startswith("arm_") for one in called for function in one)
    assert not any(op.instead for op in plan.operators)

"""MLPerf Tiny on a Cortex-M33 that starts in the Secure state, a Cortex-M3, one with code for a
Cortex-M0+, and QEMU's STM32s with a Cortex-M3: its outputs are LiteRT's.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from toolchain.deployment.verification import verify_model

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize(
    ("board_name", "model"),
    [
        ("mps2-an505", "mlperf_tiny_ad_fcae_int8"),
        pytest.param(*("mps2-an505", "mlperf_tiny_ic_resnet8_int8"), marks=pytest.mark.long),
        pytest.param(*("mps2-an505", "mlperf_tiny_kws_dscnn_int8"), marks=pytest.mark.long),
        ("mps2-an385", "mlperf_tiny_kws_dscnn_int8"),
        pytest.param(*("netduino2", "mlperf_tiny_kws_dscnn_int8"), marks=pytest.mark.long),
        ("stm32vldiscovery", "mlperf_tiny_sww_1dcnn_int8"),
        ("mps2-an385-v6m", "mlperf_tiny_ad_fcae_int8"),
        pytest.param(*("mps2-an385-v6m", "mlperf_tiny_ic_resnet8_int8"), marks=pytest.mark.long),
        pytest.param(*("mps2-an385-v6m", "mlperf_tiny_kws_dscnn_int8"), marks=pytest.mark.long),
        pytest.param(
            *("mps2-an385-v6m", "mlperf_tiny_vww_mbv1_025_96_int8"), marks=pytest.mark.long
        ),
    ],
)
def test_outputs_are_litert_s(board_name: str, model: str, tmp_path: Path) -> None:
    file = MODELS / f"{model}.tflite"
    if not file.exists():
        pytest.skip(f"{file.name} is not beside the checkout")
    result = verify_model(file, board_name, runs=1, out=tmp_path / "out")
    assert result.differing == 0 and result.count > 0

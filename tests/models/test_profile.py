"""MLPerf Tiny profiled on four cores: the same cycles in every run, and nothing uncounted."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.long import mostly_long
from toolchain import compile_model
from toolchain.deployment.profiling import profile_folder

MODELS = Path(__file__).resolve().parents[2].parent / "shared" / "models"
MLPERF_TINY = (
    "mlperf_tiny_ad_fcae_int8",
    "mlperf_tiny_ic_resnet8_int8",
    "mlperf_tiny_kws_dscnn_int8",
    "mlperf_tiny_vww_mbv1_025_96_int8",
)
BOARDS = ("netduinoplus2", "mps2-an500", "mps2-an505", "mps3-an547")
RUNS = 5

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("board", mostly_long(BOARDS, ["mps2-an500", "mps3-an547"]))
@pytest.mark.parametrize("model", mostly_long(MLPERF_TINY, ["mlperf_tiny_kws_dscnn_int8"]))
def test_counts_repeat_and_sum_to_the_whole(model: str, board: str, tmp_path: Path) -> None:
    file = MODELS / f"{model}.tflite"
    if not file.exists():
        pytest.skip(f"{file.name} is not beside the checkout")
    compile_model(file, board, tmp_path / "out")
    profile = profile_folder(tmp_path / "out", runs=RUNS)
    assert profile.unit == "cycles" and len(profile.totals) == RUNS
    for counts in (profile.totals, *(part.counts for part in profile.operators)):
        assert (
            max(counts[1:]) - min(counts[1:]) <= 0.001 * counts[0]
        )  # caches are cold in the first
    assert abs(profile.outside) <= 0.01 * profile.total
    assert profile.instructions == pytest.approx(
        sum(part.instructions or 0 for part in profile.operators), rel=0.01
    )
    assert sum(part.macs for part in profile.operators) > 0

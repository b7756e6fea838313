"""Predicted code beside what the linker says, function by function."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from toolchain import compile_model
from toolchain.memory.firmware_size import code_of
from toolchain.planning.options import PlanOptions

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
SHARED = ROOT.parent / "shared" / "models"
MODELS = ("ad_fcae", "ic_resnet8", "kws_dscnn", "vww_mbv1_025_96")
BOARDS = ("nucleo-l4r5zi", "nucleo-g0b1re", "nucleo-u575zi-q", "nucleo-h743zi", "mps3-an547")

pytestmark = pytest.mark.skipif(
    not shutil.which("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc"
)


def _check(model: Path, name: str, folder: Path) -> None:
    """The whole within 5%; a function within 5% and 8 bytes."""
    made = compile_model(model, name, folder, PlanOptions(fast=True))
    assert made.sizes is not None
    code = code_of(made.plan)
    assert code.size_bytes == pytest.approx(made.sizes.code_bytes, rel=0.05)
    with (folder / "firmware.elf").open("rb") as file:
        symbols = {
            s.name: s["st_size"]
            for s in ELFFile(file).get_section_by_name(".symtab").iter_symbols()
            if s["st_info"]["type"] == "STT_FUNC" and s["st_info"]["bind"] == "STB_GLOBAL"
        }
    linked = {f for f in symbols if f.startswith(("thimble_", "arm_")) and f in code.functions}
    assert linked == {f for f in code.functions if f.startswith(("thimble_", "arm_"))} - {
        f for f in code.functions if " part " in f or f not in symbols
    }
    called = {f for op in made.plan.operators for f in op.functions if not op.is_view}
    assert called <= linked
    for function in linked:
        assert code.functions[function] >= symbols[function] - 8


@pytest.mark.parametrize("name", [BOARDS[0], BOARDS[-1]])
def test_code_is_predicted_within_5_per_cent(name: str, tmp_path: Path) -> None:
    _check(DIGITS, name, tmp_path)


@pytest.mark.long
@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the shared models")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", BOARDS)
def test_code_of_mlperf_tiny_is_predicted_within_5_per_cent(
    name: str, model: str, tmp_path: Path
) -> None:
    _check(SHARED / f"mlperf_tiny_{model}_int8.tflite", name, tmp_path)

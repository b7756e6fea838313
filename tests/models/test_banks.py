"""A real model that fits an STM32L476 only across its two RAM banks, on an emulated M4 like it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.small_boards import small_board
from toolchain import export_models
from toolchain.boards import board
from toolchain.deployment.verification import verify_model
from toolchain.errors import DoesNotFitError
from toolchain.memory.firmware_size import check_fit
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.resources import RUNTIME_C

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
WIDE = SHARED / "models" / "tfls_mobilenet_v1_0.25_224_quant.tflite"
DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"
YAMNET = SHARED / "models" / "st_yamnet_256_64x96_esc10_int8.tflite"

pytestmark = [
    pytest.mark.skipif(not YAMNET.exists(), reason="needs ../shared/models"),
    pytest.mark.skipif(
        not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
        reason="needs arm-none-eabi-gcc and qemu-system-arm",
    ),
]


@pytest.mark.long
def test_yamnet_in_the_memories_of_an_stm32l476(tmp_path: Path) -> None:
    banks = [m for m in board("nucleo-l476rg").memories if m.name.startswith("SRAM")]
    ram = [
        (bank.name, origin, bank.size_bytes, 1, "data arena")
        for bank, origin in zip(banks, (0x2000_0000, 0x2100_0000), strict=True)
    ]
    with small_board("mps2-an386", tmp_path / "boards", ram) as name:
        options = PlanOptions().unsplit  # in blocks it fits one bank
        with pytest.raises(DoesNotFitError):
            check_fit(plan_model(YAMNET, name, replace(options, one_bank=True)))
        result = verify_model(YAMNET, name, runs=2, options=options, out=tmp_path / "out")
        arena = result.compiled.plan.arena
        assert result.differing == 0 and result.count > 0
        assert {part.bank for part in arena.parts} == {"SRAM1", "SRAM2"}
        assert arena.size_bytes <= result.compiled.plan.schedule.peak_bytes + 64


def test_an_export_over_banks_says_where_they_are_and_builds(tmp_path: Path) -> None:
    """A shared arena is in one piece instead: its union has no parts."""
    options = replace(PlanOptions().unsplit, fast=True)
    models = [WIDE, DIGITS]
    for shared in (False, True):
        out = tmp_path / str(shared)
        made = export_models(
            models, "cmake", out, "nucleo-h743zi", options=options, share_arena=shared
        )
        parts = {part.bank for part in made.models[0].plan.arena.parts}
        assert parts == (set() if shared else {"DTCM", "AXI_SRAM"})
        assert all(f" in {bank}" in (out / "README.md").read_text() for bank in parts)
        flags = ["-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard"]
        strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
        include = ["-I", out / "include", "-I", out / "src"]
        command = ["arm-none-eabi-gcc", *flags, *strict, *include, out / "example/main.c"]
        subprocess.run(command, check=True)

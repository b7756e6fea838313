"""The C of cores without a board, on the emulated machines that stand for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.deployment.compile import compile_library
from toolchain.deployment.run import deployed
from toolchain.deployment.stand_in import firmware_here
from toolchain.deployment.verification import verify_model
from toolchain.ops.interpret import interpret
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

QUICK = PlanOptions(nearly_free=False, split_seconds=0.0, fast=True)
DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("core", "machine"),
    [
        ("cortex-m0", "mps2-an385-v6m"),
        ("cortex-m4", "mps2-an386"),
        ("cortex-m85", "mps3-an547"),
    ],
)
@pytest.mark.long
def test_a_core_is_verified_in_qemu(core: str, machine: str) -> None:
    """Cores whose machine has another core, or an FPU that their C must not use."""
    judged = verify_model(DIGITS, core, runs=1, options=QUICK)
    assert judged.passed and judged.differing == 0 and judged.elements == 10
    assert (judged.board, judged.ran_on) == (core, f"{machine}:{core}")


@pytest.mark.slow
def test_the_folder_of_a_library_runs_in_qemu(tmp_path: Path) -> None:
    """The core has no FPU, and the machine has one."""
    made = compile_library(DIGITS, "cortex-m4", tmp_path / "library", QUICK)
    stack = json.loads((made.folder / "plan.json").read_text())["stack"]
    header = (made.folder / "digits_int8.h").read_text()
    assert f"#define DIGITS_INT8_STACK_BYTES {stack['size_bytes']}\n" in header
    assert "-mcpu=cortex-m4" in stack["compiler"] and stack["compiler"] in header
    with firmware_here(made.folder) as firmware, deployed(made.folder, firmware=firmware) as ran:
        assert ran.ran_on == "mps2-an386:cortex-m4" and ran.board.name == "cortex-m4"
        given = ran.pattern(1)
        assert given is not None
        graph = made.plan.graph
        (expected,) = interpret(graph, [given[name] for name in graph.inputs])
        (got,) = ran.run(given).outputs.values()
        assert (got == expected).all()

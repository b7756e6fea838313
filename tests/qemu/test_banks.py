"""Models that fit only across two memory banks, on emulated boards."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from tests.support.graphs import dense_chain, skip_network
from tests.support.host import random_inputs
from tests.support.small_boards import small_board
from toolchain.boards import GUARD_BYTES, board
from toolchain.cli import run
from toolchain.codegen import generate
from toolchain.device.build import build
from toolchain.device.session import open_board
from toolchain.errors import DoesNotFitError
from toolchain.kernels import cmsis_nn
from toolchain.memory.firmware_size import check_fit
from toolchain.ops import forms
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.ops.spec import Array
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
BANKS = {
    "mps2-an386": (
        ("SRAM", 0x2000_0000, 28_672, 1, "data arena"),
        ("CCM", 0x2100_0000, 24_576, 1, "arena"),
    ),
    "mps3-an547": (
        ("DTCM", 0x2000_0000, 24_576, 1, "data arena"),
        ("SRAM", 0x0100_0000, 28_672, 2, "data arena"),
    ),
}

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("like", sorted(BANKS))
def test_models_run_across_two_banks_and_share_them(like: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    graphs = [
        check(skip_network()),
        dense_chain("small", (96, 64, 80)),
        forms()["svdf"].sample(rng),
    ]
    with small_board(like, tmp_path / "boards", BANKS[like]) as name:
        target = board(name)
        with pytest.raises(DoesNotFitError):
            check_fit(plan_graph(graphs[0], target, PlanOptions(one_bank=True).unsplit))
        plans = [plan_graph(graph, target, PlanOptions().unsplit) for graph in graphs]
        made = [
            generate(p, target.core, cmsis_nn.find(), name=f"m{i}") for i, p in enumerate(plans)
        ]
        firmware = build(list(zip(plans, made, strict=True)), target, tmp_path / "out")
        with firmware.elf.open("rb") as file:
            sections = {s.name: s for s in ELFFile(file).iter_sections()}
        for bank, origin, size, *_ in BANKS[like]:
            section = sections[f".arena_{bank.lower()}"]
            assert origin <= section["sh_addr"]
            end = section["sh_addr"] + section["sh_size"]
            assert end <= origin + size
            assert (
                not sections[".stack"]["sh_addr"] - GUARD_BYTES
                < end
                <= sections[".stack"]["sh_addr"]
            )
        memories: list[dict[str, Array]] = [{} for _ in graphs]
        with open_board(firmware) as session:
            for index in (0, 1, 2, 0, 2, 1, 0):
                session.choose(index)
                inputs = random_inputs(graphs[index], rng)
                done = session.run(inputs)
                expected = interpret(graphs[index], inputs, memories[index])
                for output, want in zip(graphs[index].outputs, expected, strict=True):
                    np.testing.assert_array_equal(done.outputs[output], want)
                assert 0 < session.memory_use().arena_bytes <= plans[index].arena.size_bytes


def test_the_arena_below_the_stack_keeps_clear_of_the_guard(tmp_path: Path) -> None:
    """The MPU refuses the last 4 KB below the stack: the arena ends there, and runs."""
    graph = check(skip_network())
    arena = plan_graph(graph, board("mps2-an386"), PlanOptions().unsplit).arena.size_bytes
    lower = -(-arena // GUARD_BYTES) * GUARD_BYTES
    for extra in (0, GUARD_BYTES):
        banks = (
            ("UPPER", 0x2000_0000 + lower + extra, 16_384, 1, "data"),
            ("LOWER", 0x2000_0000, lower + extra, 1, "arena"),
        )
        with small_board("mps2-an386", tmp_path / f"boards{extra}", banks) as name:
            target = board(name)
            plan = plan_graph(graph, target, PlanOptions().unsplit)
            made = generate(plan, target.core, cmsis_nn.find(), name="m")
            if not extra:
                with pytest.raises(DoesNotFitError):
                    build([(plan, made)], target, tmp_path / "out")
                continue
            firmware = build([(plan, made)], target, tmp_path / "out")
            inputs = random_inputs(graph, np.random.default_rng(4))
            with open_board(firmware) as session:
                outputs = session.run(inputs).outputs
            for output, want in zip(graph.outputs, interpret(graph, inputs, {}), strict=True):
                np.testing.assert_array_equal(outputs[output], want)


def test_the_command_line_from_plan_to_verified_bytes(tmp_path: Path) -> None:
    banks = (
        ("SRAM", 0x2000_0000, 4096, 1, "data arena"),
        ("CCM", 0x2100_0000, 1600, 1, "arena"),
    )
    out, report = tmp_path / "out", tmp_path / "report.json"
    with small_board("mps2-an386", tmp_path / "boards", banks) as name:
        given = [str(DIGITS), "--board", name]
        assert run(["compile", *given, "--one-bank", "-o", str(out)]) == 1
        assert run(["compile", *given, "-o", str(out), "--json", str(report)]) == 0
        fields = json.loads(report.read_text())
        assert {part["bank"] for part in fields["arena_banks"]} == {"SRAM", "CCM"}
        assert sum(part["bytes"] for part in fields["arena_banks"]) == fields["arena_bytes"]
        assert run(["verify", *given, "--runs", "3", "--json", str(report)]) == 0
        assert json.loads(report.read_text())["differing"] == 0
        assert run(["plan", *given]) == 0
        assert run(["compile", *given, "--library", "-o", str(tmp_path / "library")]) == 0
        header = (tmp_path / "library" / "digits_int8.h").read_text()
        assert "digits_int8_run(const digits_int8_banks *arena)" in header

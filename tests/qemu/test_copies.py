"""Constants that the start-up copies: placed by the linker, copied and read in QEMU."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from tests.support.graphs import dense_chain
from tests.support.host import random_inputs
from tests.support.long import mostly_long
from toolchain.boards import Board, MemoryKind, board
from toolchain.codegen import generate
from toolchain.deployment.modelled_time import NoReader, find_reader
from toolchain.device.build import build
from toolchain.device.firmware import Firmware
from toolchain.device.session import open_board
from toolchain.ir import Graph
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops.interpret import interpret
from toolchain.planner import plan_graph
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.resources import RUNTIME_C

M4 = ("nucleo-l4r5zi", "nucleo-l476rg")
M7 = ("f746g-disco", "nucleo-f767zi", "nucleo-h743zi", "nucleo-h7a3zi-q")
EMULATED = ("mps2-an500:stm32f746", "mps2-an500:nucleo-h7a3zi-q", "mps2-an386:nucleo-l4r5zi")
ROW_BYTES = 12

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def _graph() -> Graph:
    """Constants of 77, 77, 45 and 97 KB: each bank of an H7 has one that fits, TCMs two."""
    return dense_chain("dense", (240, 320, 240, 180, 520))


def _built(graph: Graph, target: Board, folder: Path, **given: object) -> tuple[Plan, Firmware]:
    options = PlanOptions(**given)  # type: ignore[arg-type]
    plan = plan_graph(graph, target, options)
    made = generate(plan, target.core, cmsis_nn.find(), name="m")
    return plan, build([(plan, made)], target, folder)


@pytest.mark.parametrize(
    "name", mostly_long((*M7, *M4, *EMULATED), (M7[0], M7[3], M4[0], EMULATED[1]))
)
def test_copies_lie_in_their_bank_and_come_from_flash(name: str, tmp_path: Path) -> None:
    target = board(name)
    plan, firmware = _built(_graph(), target, tmp_path, optimise=Optimise.SPEED)
    assert len(plan.copied.banks) > (name in M7)
    with firmware.elf.open("rb") as file:
        elf = ELFFile(file)
        sections = {s.name: s for s in elf.iter_sections()}
        loads = [s for s in elf.iter_segments("PT_LOAD") if s["p_filesz"]]
        symbols = {s.name: s["st_value"] for s in elf.get_section_by_name(".symtab").iter_symbols()}
        rodata = sections[".rodata"]
        first, end = symbols["thimble_copies"], symbols["thimble_copies_end"]
        words = np.frombuffer(rodata.data()[first - rodata["sh_addr"] :], "<u4")
    rows = words[: (end - first) // 4].reshape(-1, 3).tolist()
    expected = [(bank, f".copied_{bank.lower()}", size, False) for bank, size in plan.copied.banks]
    if code_in := plan.copied.code_in:
        expected.append((code_in, ".code_copy", plan.copied.code_bytes, True))
    assert bool(code_in) == ("f746" in name or "l4" in name)  # the L1 of the others holds it
    assert end - first == ROW_BYTES * (1 + len(expected))
    flash = next(m for m in target.memories if m.kind is MemoryKind.FLASH)
    for (at, section_name, planned, code), (source, to, size) in zip(
        expected, rows[1:], strict=True
    ):
        bank = next(m for m in target.memories if m.name == at)
        section = sections[section_name]
        assert (to, size) == (section["sh_addr"], section["sh_size"])
        assert 0 < size <= planned
        origin = bank.code_origin if code else bank.origin
        assert origin is not None
        assert to > 0 and origin <= to and to + size <= origin + bank.size_bytes  # 0 is NULL
        kernel = symbols["thimble_fully_connected_joined_s8"]
        assert (to <= kernel < to + size) == code
        load = next(s for s in loads if s["p_vaddr"] <= to < s["p_vaddr"] + s["p_filesz"])
        assert source == load["p_paddr"] + to - load["p_vaddr"]
        assert flash.origin <= source and source + size <= flash.end
    sizes = firmware.sizes
    assert sizes.copied_bytes == sum(size for _, _, size in rows[1:])
    constants = sum(row[2] for row, what in zip(rows[1:], expected, strict=True) if not what[3])
    assert sizes.weight_bytes == constants + sections[".weights"]["sh_size"]
    kept = sizes.arena_bytes + sizes.data_bytes + sizes.bss_bytes + sizes.stack_bytes
    assert sizes.ram_bytes == kept + sizes.copied_bytes


@pytest.mark.parametrize("name", mostly_long(EMULATED, EMULATED[1:]))
def test_copied_constants_are_read_without_waits(name: str, tmp_path: Path) -> None:
    graph, target = _graph(), board(name)
    inputs = random_inputs(graph, np.random.default_rng(3))
    (want,) = interpret(graph, inputs, {})
    waits = {}
    for label, given in (
        ("flash", {"copy_constants": False}),
        ("default", {}),
        ("speed", {"optimise": Optimise.SPEED}),
    ):
        plan, firmware = _built(graph, target, tmp_path / label, **given)
        reader = find_reader(firmware)
        if isinstance(reader, NoReader):
            pytest.skip(reader.reason)
        with open_board(firmware, trace=reader.memory) as session:
            for _ in range(2):
                np.testing.assert_array_equal(session.run(inputs).outputs["y"], want)
            cycles = reader.read(session.trace().run(-1)).reading.cycles
        waits[label] = cycles.stalls
        predicted = plan.copied.saved
        if predicted:
            assert waits["flash"] - waits[label] == pytest.approx(predicted, rel=0.2)
    assert waits["speed"] <= waits["default"] < 0.65 * waits["flash"]


def test_a_project_without_such_sections_keeps_them_with_the_others(tmp_path: Path) -> None:
    """The library's C, compiled without a definition: no section of ours is left to place."""
    target = board("nucleo-h743zi")
    plan = plan_graph(_graph(), target, PlanOptions(optimise=Optimise.SPEED))
    made = generate(plan, target.core, cmsis_nn.find(), name="m")
    for name, text in made.files.items():
        (tmp_path / name).write_text(text)
    defined = '-DTHIMBLE_COPIED_DTCM=__attribute__((section(".mine")))'
    for flags, expected in (((), False), ((defined,), True)):
        command = ["arm-none-eabi-gcc", *target.compiler_flags, "-std=c99", "-Wall", "-Werror"]
        command += [f"-I{RUNTIME_C / 'include'}", *flags, "-c", "m.c", "-o", "m.o"]
        subprocess.run(command, cwd=tmp_path, check=True)
        with (tmp_path / "m.o").open("rb") as file:
            sections = {s.name for s in ELFFile(file).iter_sections()}
        assert (".mine" in sections) == expected
        assert not any("copied" in section for section in sections)

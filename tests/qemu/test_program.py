"""Disassembled firmware: no instruction without known reads and writes, no stray data."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from toolchain.boards import boards
from toolchain.cli import run
from toolchain.cycles.program import Program, read_program
from toolchain.device.compiler import find_tool
from toolchain.errors import ResultError

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "examples" / "digits" / "digits_int8.tflite"
COMPILER = "arm-none-eabi-gcc"
EMULATED = sorted(name for name, board in boards().items() if board.emulator)

pytestmark = pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is missing")


@pytest.fixture(scope="module", params=EMULATED)
def firmware(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program") / request.param
    assert run(["compile", str(MODEL), "-b", request.param, "-o", str(folder)]) == 0
    return folder / "firmware.elf"


def read(elf: Path) -> Program:
    return read_program(elf, find_tool("objdump"))


def test_every_instruction_of_a_firmware_is_known(firmware: Path) -> None:
    program = read(firmware)
    assert [i.text for i in program.unknown] == []
    assert len(program.instructions) > 1000
    starts = set(program.instructions)
    for instruction in program.instructions.values():
        if instruction.target is not None:
            assert instruction.target in starts, f"{instruction.text} goes into data"
        outside = program.function_at(instruction.address) is None
        assert not outside, f"{instruction.text} at {instruction.address:#x} is in no function"


def test_literals_are_no_instructions_and_helium_is_helium(tmp_path: Path) -> None:
    source = tmp_path / "code.S"
    source.write_text(
        ".syntax unified\n.thumb\n.text\n.global f\n.type f, %function\nf:\n"
        "ldr r0, =0xbf00bf10\nvmladava.s8 r0, q0, q1\nvldrw.u32 q0, [r1], #16\nbx lr\n.ltorg\n"
    )
    elf = tmp_path / "code.o"
    flags = ["-mcpu=cortex-m55", "-mfloat-abi=hard", "-mthumb", "-c"]
    subprocess.run([find_tool("gcc"), *flags, str(source), "-o", str(elf)], check=True)
    program = read(elf)
    # objdump prints VMLADAVA as its other name, VMLAVA.
    assert [i.mnemonic for i in program.instructions.values()] == ["ldr", "vmlava", "vldrw", "bx"]
    assert [f.name for f in program.functions] == ["f"]
    assert program.functions[0].end == 2 + 4 + 4 + 2 + 4


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "firmware.elf"
    file.write_bytes(b"not an ELF file")
    with pytest.raises(ResultError, match=r"firmware\.elf is no ELF file"):
        read(file)

"""The linked image of every board: sections in memories, vector table, no C library to speak of.

For the boards that are not here, this is all that can be checked.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from tests.support.long import mostly_long
from toolchain.bench.probe_model import WEIGHTS, probe_firmware
from toolchain.boards import GUARD_BYTES, Board, Content, Memory, MemoryKind, boards
from toolchain.boards import board as find_board
from toolchain.deployment.compile import compile_model
from toolchain.deployment.fitting import fits
from toolchain.device import build
from toolchain.device.build import BuildOptions, firmware_defines
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.device.flash import bank_beside
from toolchain.errors import DoesNotFitError
from toolchain.memory.firmware_size import estimated_need
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS, RUNTIME_C

pytestmark = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc"
)
KIB = 1024
ROOT = BOARDS.parent
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
MODELS = ROOT.parent / "shared" / "models"
HELLO = MODELS / "tflm_hello_world_int8.tflite"
KEYWORDS = MODELS / "mlperf_tiny_kws_dscnn_int8.tflite"
TARGETS = [b for b in boards().values() if not b.is_host]
ONE_A_FAMILY = list({(b.chip.family or b.name, b.core): b for b in TARGETS if b.chip}.values())
WARNINGS = [
    *("-std=gnu99", "-Os", "-fsyntax-only", "-Werror", "-Wall", "-Wextra", "-Wconversion"),
    *("-Wundef", "-Wcast-align", "-Wshadow", "-Wmissing-prototypes", "-Wstrict-prototypes"),
]
PLACES = {
    ".vectors": Content.CODE,
    ".text": Content.CODE,
    ".rodata": Content.CODE,
    ".weights": Content.WEIGHTS,
    ".stack": Content.DATA,
    ".noinit": Content.DATA,
    ".bss": Content.DATA,
    ".arena": Content.ARENA,
}


def bank_of(board: Board, address: int, size: int) -> Memory:
    return next(m for m in board.memories if m.origin <= address and address + size <= m.end)


def check_image(board: Board, firmware: Firmware) -> dict[str, int]:
    """Sections, vector table and entry of a linked image; its symbols by name."""
    assert firmware.hex.read_text().startswith(":") and firmware.map.stat().st_size > 1000
    with firmware.elf.open("rb") as file:
        elf = ELFFile(file)
        sections = {s.name: s for s in elf.iter_sections() if s["sh_flags"] & 2}
        symbols = {s.name: s["st_value"] for s in elf.get_section_by_name(".symtab").iter_symbols()}
        vectors = sections[".vectors"].data()
        entry = elf["e_entry"]
        loaded = [s for s in elf.iter_segments("PT_LOAD") if s["p_filesz"]]
        flash = [bank_of(board, s["p_paddr"], s["p_filesz"]) for s in loaded]
    others = {name for name in sections if not name.startswith(".copied_")}
    assert others <= set(PLACES) | {".data", ".code_copy"}
    for name, content in PLACES.items():
        section = sections[name]
        assert section["sh_size"] > 0, name
        assert content in bank_of(board, section["sh_addr"], section["sh_size"]).holds, name
    assert all(bank.kind is MemoryKind.FLASH for bank in flash)

    words = [int.from_bytes(vectors[i : i + 4], "little") for i in range(0, len(vectors), 4)]
    stack = sections[".stack"]
    assert sections[".vectors"]["sh_addr"] == board.memories[0].origin
    interrupt = int(board.defines["THIMBLE_UART_IRQ"].rstrip("u"), 0)
    assert len(words) == 16 + interrupt + 1
    assert words[-1] == symbols["thimble_uart_interrupt"] | 1
    assert words[0] == stack["sh_addr"] + stack["sh_size"] and words[0] % 8 == 0
    assert stack["sh_addr"] % GUARD_BYTES == 0  # the guard before it is aligned to its size
    assert words[1] == entry == symbols["thimble_reset"] | 1
    text = sections[".text"]
    for handler in words[1:8]:
        assert handler & 1
        assert text["sh_addr"] <= handler - 1 < text["sh_addr"] + text["sh_size"]
    assert sections[".arena"]["sh_addr"] % 16 == 0

    library = {"printf", "malloc", "_impure_ptr", "__sinit", "exit", "_exit", "__aeabi_dadd"}
    assert not library & set(symbols)
    return symbols


@pytest.mark.parametrize("board", mostly_long(TARGETS, ONE_A_FAMILY), ids=lambda b: b.name)
def test_image(board: Board, tmp_path: Path) -> None:
    firmware = probe_firmware(board, tmp_path)
    check_image(board, firmware)
    assert firmware.sizes.code_bytes < 5600  # 400 of them: waits that end, the clock for HELLO
    assert firmware.sizes.data_bytes == 0 and firmware.sizes.bss_bytes < 448


@pytest.mark.parametrize("name", [b.name for b in TARGETS if b.external])
def test_weights_lie_beside_the_chip(name: str, tmp_path: Path) -> None:
    """BOARD@BANK puts them there, and the firmware makes it readable; else it has no such code."""
    plain = boards()[name]
    assert plain.external is not None
    board = find_board(f"{name}@{plain.external.bank}")
    firmware = probe_firmware(board, tmp_path / "there")
    (bank,) = [m for m in board.memories if m.name == plain.external.bank]
    assert bank_beside(firmware) == bank.name
    with firmware.elf.open("rb") as file:
        elf = ELFFile(file)
        weights = elf.get_section_by_name(".weights")
        assert weights["sh_addr"] == bank.origin and weights.data()[:4] == bytes(WEIGHTS)
        assert "thimble_external_init" in names_in(elf)
        rest = [s for s in elf.iter_segments("PT_LOAD") if s["p_filesz"]]
        assert all(
            s["p_paddr"] < plain.memories[0].end for s in rest if s["p_vaddr"] != bank.origin
        )
    assert not firmware.bin.exists()  # from the chip's flash to there
    own = probe_firmware(plain, tmp_path / "own")
    assert bank_beside(own) == ""
    with own.elf.open("rb") as file:
        assert "thimble_external_init" not in names_in(ELFFile(file))


def names_in(elf: ELFFile) -> set[str]:
    return {symbol.name for symbol in elf.get_section_by_name(".symtab").iter_symbols()}


@pytest.mark.parametrize("board", mostly_long(TARGETS, ONE_A_FAMILY), ids=lambda b: b.name)
@pytest.mark.parametrize("model", mostly_long([DIGITS, HELLO], [DIGITS]), ids=lambda m: m.stem)
def test_a_model_is_an_image(model: Path, board: Board, tmp_path: Path) -> None:
    if not model.exists():
        pytest.skip(f"needs {model.name} in ../shared/models")
    need = estimated_need(compile_model(model, board.name, tmp_path / "out").plan)
    firmware = load_firmware(tmp_path / "out")
    assert {"thimble_models", "thimble_model_count"} <= set(check_image(board, firmware))
    assert firmware.sizes.ram_bytes <= need.ram_bytes
    assert firmware.sizes.flash_bytes <= 1.1 * need.flash_bytes + KIB  # code is estimated


@pytest.mark.parametrize(
    "board", [b for b in TARGETS if b.flash_bytes < 48 << 10], ids=lambda b: b.name
)
def test_what_does_not_fit_is_refused_before_compiling(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not KEYWORDS.exists():
        pytest.skip(f"needs {KEYWORDS.name} in ../shared/models")
    monkeypatch.setenv("PATH", "")  # no compiler to be found
    needs = rf"does not fit {board.name}: code and weights need [\d,]+ bytes: [\d,]+ more"
    with pytest.raises(DoesNotFitError, match=needs):
        compile_model(KEYWORDS, board.name, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    (fit,) = fits(KEYWORDS, [board], PlanOptions())
    assert re.search(needs, fit.why_not)


@pytest.mark.parametrize("board", TARGETS, ids=lambda b: b.name)
def test_firmware_has_no_warnings(board: Board) -> None:
    folder = RUNTIME_C / "firmware"
    assert board.counter is not None
    own = [*folder.glob("*.c"), *(folder / "emulator").glob("exit.c")]
    own += [folder / name for name in (*board.firmware_sources, board.counter.source)]
    command = ["arm-none-eabi-gcc", *board.compiler_flags, *WARNINGS, f"-I{folder / 'include'}"]
    options = BuildOptions(external=board.external is not None)
    if board.external is not None:
        own += [folder / name for name in board.external.sources]
    command += [*firmware_defines(board, options), *map(str, own)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_same_input_same_image(tmp_path: Path) -> None:
    board = boards()["netduinoplus2"]
    first = probe_firmware(board, tmp_path / "a")
    second = probe_firmware(board, tmp_path / "b, with a comma")
    assert first.build_id == second.build_id
    for name in ("hex", "bin"):
        assert getattr(first, name).read_bytes() == getattr(second, name).read_bytes()


def test_another_register_is_another_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are kept by content, and a board flashed by the image's identity: headers count."""
    board = boards()["nucleo-f446re"]
    folder = tmp_path / "runtime_c"
    shutil.copytree(RUNTIME_C, folder)
    monkeypatch.setattr(build, "RUNTIME_C", folder)
    first = probe_firmware(board, tmp_path / "a")
    table = folder / "firmware" / "include" / "registers_f4.h"
    table.write_text(table.read_text().replace("0x40023C00u", "0x40023D00u"))
    second = probe_firmware(board, tmp_path / "b")
    assert first.build_id != second.build_id
    images = [f.bin.read_bytes().replace(bytes.fromhex(f.build_id), b"") for f in (first, second)]
    assert images[0] != images[1]


def test_the_linker_tells_what_does_not_fit(tmp_path: Path) -> None:
    with pytest.raises(DoesNotFitError, match="bytes too many in SRAM"):
        probe_firmware(boards()["netduinoplus2"], tmp_path, BuildOptions(stack_bytes=131_000))

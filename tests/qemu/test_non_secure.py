"""A Cortex-M33 whose firmware is TrustZone's Non-secure side, started by a Secure program."""

from __future__ import annotations

import shutil
from pathlib import Path
from subprocess import run

import numpy as np
import pytest

from toolchain.bench.probe_model import probe_firmware, probe_input, probe_output
from toolchain.boards import Board, board
from toolchain.device.compiler import find_tool
from toolchain.device.qemu import Machine
from toolchain.device.session import Session
from toolchain.errors import LinkError
from toolchain.resources import BOARDS

SOURCE = Path(__file__).parents[1] / "support" / "firmware" / "secure_an505.c"
IMAGE = 0x0020_0000
MOVED = {
    "origin = 0x1000_0000\nsize_bytes = 0x40_0000": f"origin = {IMAGE}\nsize_bytes = 0x20_0000",
    "origin = 0x3800_0000": "origin = 0x2800_0000",
    "THIMBLE_UART_BASE = 0x5020_0000": "THIMBLE_UART_BASE = 0x4020_0000",
    "register = 0x5000_2004": "register = 0x4000_2004",
}
"""The Non-secure addresses of an AN505, which lack bit 28."""
SCRIPT = """
SECTIONS {
  .text 0x10000000 : { KEEP(*(.vectors)) *(.text*) *(.rodata*) }
  .stack 0x30000000 (NOLOAD) : { . += 1024; stack_end = .; }
}
"""


def non_secure(folder: Path) -> Board:
    """A user's chip and board like mps2-an505, at the Non-secure addresses."""
    (folder / "chips").mkdir(parents=True)
    shutil.copytree(BOARDS / "chips" / "families", folder / "chips" / "families")
    (folder / "an505-ns").mkdir()
    chip = (BOARDS / "chips" / "an505.toml").read_text(encoding="utf-8")
    text = (BOARDS / "mps2-an505" / "board.toml").read_text(encoding="utf-8")
    for old, new in MOVED.items():
        assert (old in chip) + (old in text) == 1
        chip, text = chip.replace(old, new), text.replace(old, new)
    (folder / "chips" / "ns.toml").write_text(chip, encoding="utf-8")
    file = folder / "an505-ns" / "board.toml"
    file.write_text(text.replace('chip = "an505"', 'chip = "ns"'), encoding="utf-8")
    return board(str(file))


def secure(folder: Path) -> Path:
    script, elf = folder / "secure.ld", folder / "secure.elf"
    script.write_text(SCRIPT, encoding="utf-8")
    flags = ["-mcpu=cortex-m33", "-mthumb", "-mcmse", "-O1", "-nostdlib", "-ffreestanding"]
    command = [find_tool("gcc"), *flags, "-Wl,--build-id=none", f"-T{script}", str(SOURCE)]
    run([*command, "-o", str(elf)], check=True)
    return elf


def test_the_firmware_runs_as_the_non_secure_side(tmp_path: Path) -> None:
    target = non_secure(tmp_path / "boards")
    firmware = probe_firmware(target, tmp_path / "out")
    data = probe_input(np.random.default_rng(1))
    image = (firmware.bin, IMAGE)
    with Machine(target, secure(tmp_path), images=[image]) as machine:
        done = Session(firmware, machine.transport, machine).run({"probe/in:0": data})
    np.testing.assert_array_equal(done.outputs["probe/out:0"], probe_output(data))


def test_secure_addresses_are_out_of_its_reach(tmp_path: Path) -> None:
    """The Secure side's own firmware, started as the Non-secure one: its UART is not its own."""
    firmware = probe_firmware(board("mps2-an505"), tmp_path / "out")
    target = non_secure(tmp_path / "boards")
    image = (firmware.bin, IMAGE)
    with (
        Machine(target, secure(tmp_path), images=[image]) as machine,
        pytest.raises(LinkError),
    ):
        Session(firmware, machine.transport, machine).run(
            {"probe/in:0": probe_input(np.random.default_rng(1))}
        )

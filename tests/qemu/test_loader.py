"""The firmware started by a boot loader in place of a reset, as `dfu-util ...:leave` does."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from toolchain.bench.probe_model import probe_firmware, probe_input, probe_output
from toolchain.boards import Board, board, read_board
from toolchain.device import compiler, qemu
from toolchain.device.qemu import Machine, TraceRequest, command_line
from toolchain.device.session import Session
from toolchain.resources import BOARDS

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
AT = 0x0800_8000
LOADER = Path(__file__).resolve().parents[1] / "support" / "firmware" / "loader.c"
LIKE = "netduinoplus2"


@pytest.mark.parametrize("flags", [(), ("-DFROM_HANDLER",)], ids=["from a thread", "an exception"])
def test_started_by_a_loader_that_leaves_all_on(
    flags: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(BOARDS, tmp_path / "boards")
    chip = tmp_path / "boards" / "chips" / f"{board(LIKE).chip.name}.toml"
    moved = (
        chip.read_text()
        .replace("origin = 0x0800_0000", f"origin = 0x{AT:X}")
        .replace("0x0010_0000", "0x0008_0000")
    )
    assert moved.count(f"0x{AT:X}") == 1
    chip.write_text(moved)
    target = read_board(tmp_path / "boards" / LIKE / "board.toml")
    firmware = probe_firmware(target, tmp_path / "out")

    loader = tmp_path / "loader.elf"
    command = [compiler.find_tool("gcc"), *target.compiler_flags, "-Os", "-nostdlib", *flags]
    command += [f"-DAPPLICATION=0x{AT:X}u", "-Wl,--section-start=.vectors=0x08000000"]
    command += ["-Wl,-Ttext=0x08000100", "-Wl,-ereset", str(LOADER)]
    subprocess.run([*command, "-o", str(loader)], check=True)

    def behind(
        board: Board,
        elf: Path,
        serial: str,
        *rest: TraceRequest | Sequence[tuple[Path, int]] | None,
    ) -> list[str]:
        return [*command_line(board, loader, serial, *rest), "-device", f"loader,file={elf}"]

    monkeypatch.setattr(qemu, "command_line", behind)
    rng = np.random.default_rng(1)
    with Machine(target, firmware.elf) as machine:
        session = Session(firmware, machine.transport, machine)
        for _ in range(3):
            data = probe_input(rng)
            done = session.run({"probe/in:0": data})
            np.testing.assert_array_equal(done.outputs["probe/out:0"], probe_output(data))

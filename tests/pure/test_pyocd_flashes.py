"""The real pyocd, with a board's command lines and ST's flash algorithms, flashes a stand-in for
the chip: only its USB is another (`tests/support/pyocd_over_tcp.py`), and unicorn runs the
algorithms.

A part that pyocd knows without a pack is tried always; all boards where $THIMBLE_CMSIS_PACKS names
a folder with ST's packs (STM32F4xx_DFP and so on).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.support.probe_server import RUNS, SERIAL, Chip, ProbeServer, executable
from toolchain.boards import board, boards
from toolchain.device.firmware import Firmware, FirmwareModel, Sizes
from toolchain.device.flash import IdentityError, UnreadError, flash
from toolchain.errors import LinkError

PYOCD = shutil.which("pyocd")
OVER_TCP = Path(__file__).parents[1] / "support" / "pyocd_over_tcp.py"
PACKS = sorted(Path(os.environ.get("THIMBLE_CMSIS_PACKS") or "/nowhere").glob("*.pack"))
KNOWN = "stm32f767zi"
"""A part that needs no pack."""
CODE = bytes(range(96, 160))
Put = Callable[[Chip | None], None]

pytestmark = pytest.mark.skipif(
    PYOCD is None or not RUNS, reason="needs pyocd, and unicorn beside pytest"
)
needs_packs = pytest.mark.skipif(not PACKS, reason="needs packs in $THIMBLE_CMSIS_PACKS")


def firmware_for(name: str, folder: Path, target: str = "") -> Firmware:
    there = board(name)
    options = {"pyocd": {"target": target or there.flash_runners["pyocd"]["target"]}}
    there = replace(there, flash_runners=MappingProxyType(options))
    model = FirmwareModel("m", 16, (), (), ())
    made = Firmware(folder, there, (model,), Sizes(1, 1, 1, 1, 1, 1), "00" * 16)
    made.elf.write_bytes(executable(CODE, there.memories[0].origin))
    made.bin.write_bytes(CODE)
    return made


@pytest.fixture
def probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Put]:
    """Puts a chip, or no ST-LINK, where pyocd looks for one."""
    servers: list[ProbeServer] = []
    assert PYOCD is not None
    interpreter = Path(PYOCD).read_text().splitlines()[0].removeprefix("#!")
    folder = tmp_path / "a folder; with [signs]"
    folder.mkdir()

    def put(chip: Chip | None) -> None:
        servers.append(ProbeServer(chip))
        words = f'"{interpreter}" "{OVER_TCP}" {servers[-1].port} "$@"'
        packs = " ".join(f'--pack "{pack}"' for pack in PACKS)
        (tmp_path / "pyocd").write_text(f"#!/bin/sh\nexec {words} {packs}\n")
        (tmp_path / "pyocd").chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.chdir(folder)
    yield put
    for server in servers:
        server.close()


def flashes(firmware: Firmware, put: Put, *, asleep: bool = False) -> None:
    chip = Chip(firmware.board, asleep=asleep)
    put(chip)
    lines: list[str] = []
    flash(firmware, "pyocd", SERIAL, lines.append)
    assert bytes(chip.flash[: len(CODE)]) == CODE
    assert 0 in chip.erased and max(chip.erased) < 1 << 15  # ST's H7A3 algorithm takes four at once
    assert chip.resets > 0 and len(lines) == (4 if asleep else 3)


def test_it_flashes(probed: Put) -> None:
    flashes(firmware_for("nucleo-f767zi", Path.cwd(), KNOWN), probed)


def test_a_chip_that_sleeps_is_flashed_under_reset(probed: Put) -> None:
    flashes(firmware_for("nucleo-f767zi", Path.cwd(), KNOWN), probed, asleep=True)


@needs_packs
@pytest.mark.parametrize("name", [n for n, b in boards().items() if "pyocd" in b.flash_runners])
def test_every_board_is_flashed_with_its_pack(name: str, probed: Put) -> None:
    flashes(firmware_for(name, Path.cwd()), probed)


def test_another_chip_is_left_alone(probed: Put) -> None:
    chip = Chip(board("f746g-disco"))
    probed(chip)
    with pytest.raises(IdentityError, match=r"this is no nucleo-f767zi.*nothing was written"):
        flash(firmware_for("nucleo-f767zi", Path.cwd(), KNOWN), "pyocd")
    assert not any(chip.flash)


def test_no_probe_an_unknown_part_and_other_bytes(probed: Put) -> None:
    class Worn(Chip):
        def _program(self, offset: int, data: bytes) -> None:
            super()._program(offset, bytes(b & 0xF7 for b in data))

    probed(None)
    with pytest.raises(UnreadError, match="no debug probe"):
        flash(firmware_for("nucleo-f767zi", Path.cwd(), KNOWN), "pyocd")
    probed(Chip(board("nucleo-f767zi")))
    with pytest.raises(UnreadError, match="run `pyocd pack install stm32none`"):
        flash(firmware_for("nucleo-f767zi", Path.cwd(), "stm32none"), "pyocd")
    probed(Worn(board("nucleo-f767zi")))
    with pytest.raises(LinkError, match=r"does not hold the firmware|could not flash"):
        flash(firmware_for("nucleo-f767zi", Path.cwd(), KNOWN), "pyocd")

"""The real openocd, with each board's own command lines, flashes a stand-in for the chip: its
ST-LINK driver speaks over TCP in place of USB (`tests/support/probe_server.py`)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.probe_server import FAMILIES, SERIAL, Chip, ProbeServer, executable
from toolchain.boards import board, boards
from toolchain.device.firmware import Firmware, FirmwareModel, Sizes
from toolchain.device.flash import IdentityError, UnreadError, flash
from toolchain.errors import LinkError

REAL = [
    name
    for name, b in boards().items()
    if "openocd" in b.flash_runners and b.chip.identity and b.chip.identity.device_id in FAMILIES
]
"""Those of whose chips there is a stand-in."""
OPENOCD = shutil.which("openocd")
ASLEEP = ("nucleo-f446re", "nucleo-h743zi", "nucleo-l476rg")  # one for each flash driver
CODE = bytes(range(96, 160))

pytestmark = pytest.mark.skipif(OPENOCD is None, reason="needs openocd")

WRAPPER = """#!{python}
import os, sys
words = sys.argv[1:]
after = max(i for i, word in enumerate(words) if word == "-f") + 2
words[after:after] = ["-c", "hla_stlink_backend tcp {port}", "-c",
    "foreach t [target names] {{ $t configure -work-area-size 0 }}"]
os.execv("{openocd}", ["openocd", *words])
"""


def firmware_for(name: str, folder: Path) -> Firmware:
    model = FirmwareModel("m", 16, (), (), ())
    made = Firmware(folder, board(name), (model,), Sizes(1, 1, 1, 1, 1, 1), "00" * 16)
    made.elf.write_bytes(executable(CODE, made.board.memories[0].origin))
    return made


@pytest.fixture
def probed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Chip | None], None]]:
    """Puts a chip, or no ST-LINK, where openocd looks for one.

    The working area is taken away, so that openocd programs by itself. The little program that it
    would load there is fed while it runs, which the stand-in's core cannot do.
    """
    servers: list[ProbeServer] = []

    def put(chip: Chip | None) -> None:
        servers.append(ProbeServer(chip))
        wrapper = tmp_path / "openocd"
        port = servers[-1].port
        text = WRAPPER.format(python=sys.executable, port=port, openocd=OPENOCD)
        wrapper.write_text(text)
        wrapper.chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    yield put
    for server in servers:
        server.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "asleep"),
    [(name, False) for name in REAL] + [(name, True) for name in ASLEEP],
    ids=lambda value: {False: "awake", True: "asleep"}.get(value, value),
)
def test_it_flashes(
    name: str, asleep: bool, tmp_path: Path, probed: Callable[[Chip | None], None]
) -> None:
    chip = Chip(board(name), asleep=asleep)
    probed(chip)
    lines: list[str] = []
    flash(firmware_for(name, tmp_path), "openocd", SERIAL, lines.append)
    assert bytes(chip.flash[: len(CODE)]) == CODE
    assert chip.erased == [0] and chip.resets > 0 and not chip.halted
    assert len(lines) == (3 if asleep else 2)


def test_another_chip_is_left_alone(tmp_path: Path, probed: Callable[[Chip | None], None]) -> None:
    for name, there in (("nucleo-f446re", "f4-discovery"), ("f746g-disco", "nucleo-f767zi")):
        chip = Chip(board(there))
        probed(chip)
        with pytest.raises(IdentityError, match=f"this is no {name}.*nothing was written"):
            flash(firmware_for(name, tmp_path), "openocd")
        assert not any(chip.flash) and not chip.erased


def test_flash_that_keeps_other_bytes_is_noticed(
    tmp_path: Path, probed: Callable[[Chip | None], None]
) -> None:
    class Worn(Chip):
        def _program(self, offset: int, data: bytes) -> None:
            super()._program(offset, bytes(b & 0xF7 for b in data))

    probed(Worn(board("nucleo-f446re")))
    with pytest.raises(LinkError, match="could not flash nucleo-f446re") as told:
        flash(firmware_for("nucleo-f446re", tmp_path), "openocd")
    assert "Verify Failed" in str(told.value)


def test_no_probe_and_the_wrong_probe(
    tmp_path: Path, probed: Callable[[Chip | None], None]
) -> None:
    firmware = firmware_for("nucleo-f446re", tmp_path)
    probed(None)
    with pytest.raises(UnreadError, match="no debug probe"):
        flash(firmware, "openocd")
    probed(Chip(firmware.board))
    with pytest.raises(UnreadError, match="no debug probe"):
        flash(firmware, "openocd", "another")


def test_the_second_bank_is_reached(tmp_path: Path, probed: Callable[[Chip | None], None]) -> None:
    """Where code lies in the second megabyte; one bank's file would stop there."""
    for name in ("nucleo-h7a3zi-q", "nucleo-l4r5zi"):
        firmware = firmware_for(name, tmp_path)
        firmware.elf.write_bytes(executable(CODE, 0x0810_0000))
        chip = Chip(board(name))
        probed(chip)
        flash(firmware, "openocd")
        assert bytes(chip.flash[1 << 20 : (1 << 20) + len(CODE)]) == CODE

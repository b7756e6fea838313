"""Which chips the flashing tools of a distribution know, and the drive of an ST-LINK.

Debian 12 has openocd 0.12.0, whose src/flash/nor/stm32l4x.h:88 to 107 (9ea7f3d) lacks 0x481, and
stlink-tools 1.7.0, whose src/stlink-lib/chipid.h:16 to 69 (179650d) lacks nine chips of the boards;
its "unknown chip id" (src/common.c:1598) was taken for a board without power. pyocd takes no
ST-LINK/V1 (pyocd/probe/stlink/usb.py:57, d1974ff).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pure.test_flash import SAID, firmware_for
from toolchain.boards import board, boards
from toolchain.device import drive, flash, runners
from toolchain.device.flash import IdentityError, UnreadError, choose
from toolchain.device.tool_versions import KNOWN
from toolchain.errors import LinkError, MissingToolError

OF_DEBIAN_12 = {
    "openocd": "Open On-Chip Debugger 0.12.0",
    "st-flash": "v1.7.0",
}


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Programs that only tell a version, and no others on the path."""
    for program, version in versions.items():
        file = folder / program.replace("_", "-")
        file.write_text(f'#!/bin/sh\necho "{version}" 1>&2\n')
        file.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(runners, "drives", dict)


def of_debian_12(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(folder, monkeypatch, **{k.replace("-", "_"): v for k, v in OF_DEBIAN_12.items()})


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nucleo-u5a5zj-q", "openocd 0.12.0 does not know the chip, device 0x481"),
        ("nucleo-h503rb", "st-flash 1.7.0 does not know the chip, device 0x474"),
        ("nucleo-h563zi", "st-flash 1.7.0 does not know the chip, device 0x484; 1.8.0 does"),
        ("nucleo-c031c6", "st-flash 1.7.0 does not know the chip, device 0x453; 1.8.0 does"),
    ],
)
def test_a_chip_that_the_tools_of_debian_12_lack_is_refused_before_anything_runs(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_debian_12(tmp_path, monkeypatch)
    with pytest.raises(MissingToolError) as caught:
        choose(board(name))
    assert why in str(caught.value) and "pyocd" in str(caught.value)


def test_the_next_tool_that_knows_the_chip_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_debian_12(tmp_path, monkeypatch)
    assert choose(board("nucleo-u575zi-q")).name == "openocd"  # DEVID_STM32U57_U58XX
    assert choose(board("nucleo-g0b1re")).name == "openocd"
    with pytest.raises(MissingToolError, match="0x467"):
        choose(board("nucleo-g0b1re"), "stlink")
    (tmp_path / "pyocd").symlink_to(tmp_path / "openocd")
    assert choose(board("nucleo-u5a5zj-q")).name == "pyocd"


@pytest.mark.parametrize("version", ["v1.8.0", "1.8.1-7-g1234567", "something else"])
def test_a_newer_tool_is_trusted(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, st_flash=version)
    assert choose(board("nucleo-h563zi")).name == "stlink"


def test_an_openocd_between_releases_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, openocd="Open On-Chip Debugger 0.12.0+dev-00623-gbbf6c5a")
    assert choose(board("nucleo-u5a5zj-q")).name == "openocd"


def test_every_board_has_a_tool_of_debian_12_or_a_package_of_python() -> None:
    """Or ST's own alone, where pyocd has no name for the chip in Zephyr's board.cmake either."""
    alone = set()
    for target in (b for b in boards().values() if b.flash_runners):
        assert target.chip.identity is not None
        knows = {
            "openocd": KNOWN["openocd"][0, 12, 0],
            "stlink": KNOWN["stlink"][1, 7, 0],
        }
        able = [
            r for r in target.flash_runners if target.chip.identity.device_id in knows.get(r, ())
        ]
        if not able and "pyocd" not in target.flash_runners:
            alone.add(target.name)
    assert alone == {"nucleo-h7s3l8", "nucleo-n657x0-q"}


def test_an_unknown_chip_is_not_a_board_without_power() -> None:
    runner = choose(board("nucleo-h743zi"), "stlink", installed=False)
    assert "does not know the chip" in runner.complaint("WARN common.c: unknown chip id! 0x474")
    assert "is the board powered" in runner.complaint("WARN common.c: unknown chip id! 0")
    assert "does not know" not in runner.complaint(SAID["stlink"])


def test_pyocd_is_not_offered_for_an_st_link_of_version_1() -> None:
    for target in boards().values():
        if "0483:3744" in target.usb_ids or target.name == "vl-discovery":
            assert "pyocd" not in target.flash_runners, target.name


def mounted(folder: Path, label: str) -> Path:
    """A drive as an ST-LINK shows it, and the table that has it."""
    (folder / label).mkdir()
    (folder / label / "DETAILS.TXT").write_text("Version: 0221\n")
    table = folder / "mounts"
    table.write_text(f"/dev/sda {folder / label} vfat rw 0 0\nproc /proc proc rw 0 0\n")
    return table


def test_firmware_is_copied_to_the_drive_of_the_right_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mounted(tmp_path, "NODE_H743ZI")
    found = drive.drives(table)
    assert found == {"NODE_H743ZI": tmp_path / "NODE_H743ZI"}
    monkeypatch.setattr(runners, "drives", lambda: found)
    firmware = firmware_for("nucleo-h743zi", tmp_path)
    runner = choose(firmware.board, "drive")
    runner.check(firmware.board, "drive NODE_H743ZI at /media/NODE_H743ZI")
    assert runner.write(firmware)[-3:] == ["copy", str(firmware.bin), "NODE_H743ZI"]
    with pytest.raises(IdentityError, match="nothing was written"):
        runner.check(firmware.board, "drive NODE_F446RE at /media/NODE_F446RE")
    with pytest.raises(UnreadError, match="no drive"):
        runner.check(firmware.board, "")


def test_the_drive_that_comes_back_tells_whether_it_worked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mounted(tmp_path, "NODE_F446RE")
    at, image = tmp_path / "NODE_F446RE", tmp_path / "firmware.bin"
    image.write_bytes(b"firmware")

    def programmed(seconds: float) -> None:
        assert (at / "firmware.bin").read_bytes() == b"firmware"
        (at / "firmware.bin").unlink()

    monkeypatch.setattr(drive.time, "sleep", programmed)
    assert drive.copy(image, "NODE_F446RE", table) == ""

    def failed(seconds: float) -> None:
        (at / "FAIL.TXT").write_text("The target could not be erased\n")

    monkeypatch.setattr(drive.time, "sleep", failed)
    assert drive.copy(image, "NODE_F446RE", table) == "The target could not be erased"
    monkeypatch.setattr(drive.time, "sleep", lambda seconds: None)
    assert "did not come back" in drive.copy(image, "NODE_F446RE", table, back_seconds=0.01)
    assert "not mounted" in drive.copy(image, "NODE_H743ZI", table)


def test_a_drive_that_complains_fails_the_flashing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    firmware = firmware_for("nucleo-f446re", tmp_path)
    monkeypatch.setattr(runners, "drives", lambda: {"NODE_F446RE": tmp_path})
    answers = {"find": "drive NODE_F446RE at /media/NODE_F446RE", "copy": "programming failed"}
    monkeypatch.setattr(flash, "_run", lambda runner, board, line, **_: answers[line[3]])
    with pytest.raises(LinkError, match="programming failed"):
        flash.flash(firmware, "drive")
    answers["copy"] = "the ST-LINK programmed it"
    flash.flash(firmware, "drive")

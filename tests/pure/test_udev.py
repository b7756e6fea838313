"""The rules for udev give access to every board and stick that Thimble knows."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from toolchain.boards import boards
from toolchain.cli import run
from toolchain.device import udev
from toolchain.errors import InputError, MissingToolError

CORAL = ("1a6e:089a", "18d1:9302")
"""libedgetpu's debian/edgetpu-accelerator.rules: before and after its firmware is loaded."""


def opened(subsystem: str) -> list[tuple[str, str]]:
    """(vendor, pattern of products) of the rules for a subsystem, as udev(7) reads alternatives."""
    lines = [line for line in udev.RULES.read_text().splitlines() if "GROUP=" in line]
    matched = []
    for line in lines:
        keys = dict(re.findall(r'(\w+)(?:\{\w+\})?=="([^"]*)"', line))
        names = dict(re.findall(r'\{(idVendor|idProduct)\}=="([^"]*)"', line))
        if subsystem in keys["SUBSYSTEM"].split("|") and names:
            matched += [(names["idVendor"], p) for p in names["idProduct"].split("|")]
    return matched


def reaches(subsystem: str, usb_id: str) -> bool:
    vendor, product = usb_id.split(":")
    return any(v == vendor and fnmatchcase(product, p) for v, p in opened(subsystem))


def test_probes_and_ports_of_all_boards() -> None:
    probes = {usb_id for board in boards().values() for usb_id in board.usb_ids}
    assert len(probes) >= 4
    for usb_id in probes:
        assert reaches("usb", usb_id) and reaches("tty", usb_id), usb_id
    runners = [r for board in boards().values() for r in board.flash_runners.values()]
    loaders = {runner["device"] for runner in runners if "device" in runner}
    assert loaders and all(reaches("usb", loader) for loader in loaders)
    assert all(reaches("usb", stick) for stick in CORAL)
    assert not reaches("usb", "0483:5740") and not reaches("tty", "18d1:9302")


def test_they_are_written(tmp_path: Path) -> None:
    place = tmp_path / "rules.d" / udev.RULES.name
    with pytest.raises(MissingToolError, match=r"rules\.d does not exist"):
        udev.install(place)
    place.parent.mkdir()
    assert not udev.is_installed(place)
    udev.install(place)
    assert udev.is_installed(place) and place.read_text() == udev.RULES.read_text()


def test_without_the_right_to_write_it_says_the_command(tmp_path: Path) -> None:
    place = tmp_path / "rules.d" / udev.RULES.name
    place.mkdir(parents=True)  # what nobody can replace by a file
    with pytest.raises(InputError, match=r"as root it works:\nsudo install -m 644 .*udevadm"):
        udev.install(place)
    assert [entry.name for entry in place.parent.iterdir()] == [place.name]


def test_doctor_knows_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--help"]) == 0
    assert "--install-udev" in capsys.readouterr().out

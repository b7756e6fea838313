"""The tools of this machine, and how the board is plugged in."""

from __future__ import annotations

import platform
from pathlib import PurePath

from toolchain.contact.step import Step
from toolchain.contact.visit import Told, Visit, told
from toolchain.device.doctor import examine
from toolchain.device.flash import choose
from toolchain.device.ports import attached_ports
from toolchain.errors import ThimbleError


def _run(visit: Visit) -> Told:
    found = examine()
    versions = {f.what: _without_path(f.found) for f in found if f.found}
    missing = [f"{f.what} is missing: {f.remedy}" for f in found if f.needed and not f.found]
    facts = [f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"]
    runner = ""
    if visit.board.emulator is None:
        try:
            runner = choose(visit.board, visit.desk.runner, probe=visit.desk.probe).name
            facts.append(f"{runner} flashes {visit.board.name}")
        except ThimbleError as error:
            missing.append(str(error))
    ports = [{"usb_id": p.usb_id, "description": p.description} for p in attached_ports()]
    return told(missing, facts, {"versions": versions, "runner": runner, "serial_ports": ports})


def _without_path(text: str) -> str:
    """A version; of a path its last name alone: folders of a user stay at home."""
    return PurePath(text).name if PurePath(text).is_absolute() else text


STEP = Step("tools", "probe, tools and versions", _run)

"""The contact firmware on the board: built, flashed, greeted."""

from __future__ import annotations

from toolchain.contact.step import Step
from toolchain.contact.visit import Told, Visit, told
from toolchain.device.answers import BesideError


def _run(visit: Visit) -> Told:
    external, findings = visit.board.external is not None, []
    firmware = visit.desk.maker(visit.board, visit.folder / "contact", external=external)
    try:
        session = visit.put(firmware)
    except BesideError as error:
        findings.append(str(error))
        external = False
        firmware = visit.desk.maker(visit.board, visit.folder / "inside", external=False)
        session = visit.put(firmware)
    visit.external = external
    sizes, hello = firmware.sizes, session.hello
    facts = [f"the contact firmware answers: {sizes.flash_bytes:,} bytes of flash"]
    values = {
        "flash_bytes": sizes.flash_bytes,
        "ram_bytes": sizes.ram_bytes,
        "build_id": firmware.build_id,
        "beside": hello.beside_identity,
    }
    return told(findings, facts, values)


STEP = Step("start", "contact firmware: build, flash, greet", _run)

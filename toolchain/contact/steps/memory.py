"""A march over RAM, and the CRC of flash."""

from __future__ import annotations

from typing import Any

from toolchain.boards import MemoryKind
from toolchain.contact.commands import marched, summed
from toolchain.contact.firmware import Range, free_ranges, images
from toolchain.contact.step import Step
from toolchain.contact.visit import LONGEST_SECONDS, Told, Visit, told
from toolchain.device.firmware import Firmware
from toolchain.device.link import BoardFaultError
from toolchain.device.session import Session


def _run(visit: Visit) -> Told:
    session, firmware = visit.session, visit.firmware
    assert session is not None and firmware is not None
    findings: list[str] = []
    facts: list[str] = []
    values: dict[str, Any] = {"ram": [], "flash": []}
    ranges = free_ranges(firmware, external=visit.external)
    for part in ranges:
        if bad := _march(session, part):
            findings.append(bad)
        values["ram"].append({"bank": part.bank, "start": part.start, "bytes": part.size_bytes})
    for bank in visit.board.memories:
        if bank.kind is MemoryKind.RAM:
            tried = sum(part.size_bytes for part in ranges if part.bank == bank.name)
            why = "; the firmware lives in the rest" if tried < bank.size_bytes else ""
            why = why if tried else "; the start-up does not enable it"
            facts.append(f"{bank.name}: {tried:,} of {bank.size_bytes:,} bytes marched over{why}")
    found, told_crcs = _flash(session, visit, firmware)
    findings += found
    values["flash"] = told_crcs
    if told_crcs:
        size_bytes = sum(image["bytes"] for image in told_crcs)
        facts.append(f"the CRC of the firmware's {size_bytes:,} bytes of flash")
    return told(findings, facts, values)


def _march(session: Session, part: Range) -> str:
    """The fault of a range of RAM, as a sentence; '' for none."""
    try:
        bad = marched(session, part.start, part.size_bytes, LONGEST_SECONDS)
    except BoardFaultError as error:
        session.greet()
        return (
            f"{part.bank} ends before 0x{part.start + part.size_bytes:08x}: {error.fault.reason()} "
            "while it was marched over. The chip has less RAM than the board's file says, or the "
            "bank has no clock"
        )
    if bad is None:
        return ""
    bits = ", ".join(map(str, bad.bits))
    return (
        f"{part.bank} is damaged at 0x{bad.address:08x}: bit {bits} (0x{bad.seen:08x} was read "
        f"where 0x{bad.wanted:08x} was written). Take another chip, or leave the bank out of the "
        "board's file"
    )


def _flash(
    session: Session, visit: Visit, firmware: Firmware
) -> tuple[list[str], list[dict[str, Any]]]:
    """Findings, and the CRC of each image; each is read twice."""
    findings, values = [], []
    for image in images(firmware):
        first, again = (
            summed(session, image.start, image.size_bytes, LONGEST_SECONDS) for _ in range(2)
        )
        where = f"the {image.size_bytes:,} bytes of flash at 0x{image.start:08x}"
        if first != again:
            findings.append(
                f"{where} read differently twice (CRC 0x{first:08x}, 0x{again:08x}): too few wait "
                f"states at {visit.board.clock_hz / 1e6:g} MHz, or a weak supply"
            )
        elif first != image.crc:
            findings.append(
                f"{where} are not those that were built (CRC 0x{first:08x}, not "
                f"0x{image.crc:08x}): flash again, with another tool"
            )
        values.append({"start": image.start, "bytes": image.size_bytes, "crc": first})
    return findings, values


STEP = Step("memory", "march over RAM, CRC of flash", _run, asks_contact=True)

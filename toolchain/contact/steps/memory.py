"""A march over RAM, and the CRC of flash in the chip and beside it."""

from __future__ import annotations

from typing import Any

from toolchain.boards import Memory, MemoryKind
from toolchain.contact.commands import marched, summed
from toolchain.contact.firmware import Range, free_ranges, images
from toolchain.contact.step import Step
from toolchain.contact.visit import LONGEST_SECONDS, Told, Visit, told
from toolchain.device.firmware import Firmware
from toolchain.device.link import BoardFaultError
from toolchain.device.session import Session

_MOST_BESIDE_BYTES = 1 << 20
"""From the beginning of a memory beside the chip: 1 MiB is summed within seconds."""


def _run(visit: Visit) -> Told:
    session, firmware = visit.session, visit.firmware
    assert session is not None and firmware is not None
    findings: list[str] = []
    facts: list[str] = []
    values: dict[str, Any] = {"ram": [], "flash": [], "beside": []}
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
    for bank in visit.board.memories:
        if bank.kind is MemoryKind.FLASH and bank.beside:
            if not visit.external:
                facts.append(f"{bank.name} was not summed: it was not made readable")
                continue
            wrong, right, summed_up = _beside(session, bank)
            findings += wrong
            facts += right
            values["beside"].append(summed_up)
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


def _beside(session: Session, bank: Memory) -> tuple[list[str], list[str], dict[str, Any]]:
    """Findings, facts and values of the first bytes of flash beside the chip, summed twice: any
    content is right, but it reads the same again."""
    size_bytes = min(bank.size_bytes, _MOST_BESIDE_BYTES)
    values = {"bank": bank.name, "start": bank.origin, "bytes": size_bytes}
    try:
        first, again = (summed(session, bank.origin, size_bytes, LONGEST_SECONDS) for _ in range(2))
    except BoardFaultError as error:
        session.greet()
        return [f"{bank.name} cannot be read: {error.fault.reason()}"], [], values
    values["crcs"] = [first, again]
    part = "the first " if size_bytes < bank.size_bytes else ""
    where = f"{bank.name}: {part}{size_bytes:,} of its {bank.size_bytes:,} bytes"
    if first != again:
        finding = (
            f"{where} read differently twice (CRC 0x{first:08x}, 0x{again:08x}): its clock is too "
            "quick for the memory's waits or for the lines to it ([external] of the board's file)"
        )
        return [finding], [], values
    return [], [f"{where} read the same twice (CRC 0x{first:08x})"], values


STEP = Step("memory", "march over RAM, CRC of flash, beside the chip too", _run, asks_contact=True)

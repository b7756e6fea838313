"""The chip: device, revision, unique number (hashed), registers of clock, supply, flash, reset."""

from __future__ import annotations

import hashlib
from typing import Any

from toolchain.contact.commands import peeked
from toolchain.contact.step import Step
from toolchain.contact.visit import LONGEST_SECONDS, Told, Visit, skipped, told
from toolchain.device.link import BoardFaultError
from toolchain.device.session import Session
from toolchain.device.start_record import registers_of

_ASKED = ("RCC_", "PWR_", "FLASH_", "SYSCFG_")
"""Registers that are read without an effect."""
_UNIQUE_WORDS = 3


def _run(visit: Visit) -> Told:
    session = visit.session
    assert session is not None
    if visit.board.emulator is not None:
        return skipped("QEMU models neither the chip's identity nor its clock registers")
    hello, identity = session.hello, visit.board.chip.identity
    facts: list[str] = []
    findings: list[str] = []
    values: dict[str, Any] = {}
    if hello.identity:
        values |= {"device_id": hello.device_id, "revision_id": hello.revision_id}
        facts.append(f"device 0x{hello.device_id:03x}, revision 0x{hello.revision_id:04x}")
    else:
        facts.append("the chip gives its identity to a probe alone")
    held: dict[str, int] = {}
    own = identity.registers if identity is not None else {}
    for name, address in {**registers_of(visit.board), **own}.items():
        if name.startswith(_ASKED):
            try:
                (held[name],) = peeked(session, [address], LONGEST_SECONDS)
            except BoardFaultError as error:
                findings.append(f"{name} cannot be read: {error.fault.reason()}")
                session.greet()
    facts.append(f"{len(held)} registers of clock, supply, flash, reset and option bytes were read")
    values["registers"] = {name: f"0x{word:08x}" for name, word in held.items()}
    if identity is not None and identity.unique_id:
        values["unique_id_hash"] = _unique(session, identity.unique_id)
    return told(findings, facts, values)


def _unique(session: Session, address: int) -> str:
    """Half of the SHA-256 of the chip's unique number: it tells two boards apart, and no more. ''
    where it cannot be read."""
    try:
        words = peeked(session, [address + 4 * i for i in range(_UNIQUE_WORDS)], LONGEST_SECONDS)
    except BoardFaultError:
        session.greet()
        return ""
    return hashlib.sha256(b"".join(w.to_bytes(4, "little") for w in words)).hexdigest()[:32]


STEP = Step("chip", "device, revision, registers", _run, asks_contact=True)

"""Code and reads with prefetch and with caches, and without: each combination of the switches."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from toolchain.boards.chip_model import Switch
from toolchain.contact.commands import (
    ANY_WORD,
    LANDINGS,
    WORD_BYTES,
    branch_ticks,
    pair_ticks,
    peeked,
    read_ticks,
    switched,
)
from toolchain.contact.firmware import PAIR_REPEATS
from toolchain.contact.step import Step
from toolchain.contact.visit import LONGEST_SECONDS, Told, Visit, skipped, told
from toolchain.device.session import Session

_SPAN_BYTES, _READS = 1 << 12, 256
_STRAIGHT, _PAIR = 0, 2
"""The pair of two additions, which depend on nothing: code in a row."""
_MEASURES: Mapping[str, str] = {
    "straight": "an instruction of code in a row",
    "call": "a call to a new line",
    "sequential": "a read in sequence",
    "random": "a read at random",
}


def _run(visit: Visit) -> Told:
    session, board = visit.session, visit.board
    assert session is not None
    if board.emulator is not None:
        return skipped("QEMU models neither the prefetch of a flash nor a cache")
    switches = board.chip.switches
    if not switches:
        return skipped(f"{board.chip.title} has no prefetch or cache that may be switched here")
    before = _words(session, switches)
    there = {n: s for n, s in switches.items() if before[s.register] & s.bits == s.bits}
    facts = [
        f"{switches[name].title} ({name}) was off: the start-up leaves it so on this revision"
        for name in switches.keys() - there.keys()
    ]
    findings: list[str] = []
    settings: list[dict[str, Any]] = []
    try:
        for on in product((True, False), repeat=len(there)):
            wanted = dict(zip(there, on, strict=True))
            stuck = _set(session, there, wanted)
            if stuck:
                findings += [f"{there[n].title} ({n}) did not change" for n in stuck]
                break
            settings.append({"on": [n for n in there if wanted[n]], **_measured(visit, session)})
    finally:
        _set(session, there, dict.fromkeys(there, True))
    if _words(session, switches) != before:
        findings.append("the registers are not as they were before; a reset makes them so")
    facts += _compared(there, settings) if not findings else []
    words = {f"0x{at:08x}": f"0x{word:08x}" for at, word in before.items()}
    values = {"registers": words, "settings": settings}
    return told(findings, facts, values)


def _words(session: Session, switches: Mapping[str, Switch]) -> dict[int, int]:
    places = sorted({switch.register for switch in switches.values()})
    return dict(zip(places, peeked(session, places, LONGEST_SECONDS), strict=True))


def _set(session: Session, switches: Mapping[str, Switch], wanted: Mapping[str, bool]) -> list[str]:
    """Turn switches on or off. Returns the names of those that stay as they are."""
    stuck = []
    for name, switch in switches.items():
        place, bits, on = switch.register, switch.bits, wanted[name]
        _, held = switched(session, place, bits, LONGEST_SECONDS, on=on)
        if held & bits != (bits if on else 0):
            stuck.append(name)
    return stuck


def _measured(visit: Visit, session: Session) -> dict[str, float]:
    """Cycles of each of `_MEASURES`, of the bank that the core starts from."""
    board = visit.board
    bank = board.memories[0]
    per_tick = board.counter.per_tick if board.counter else 1.0
    span_bytes = min(_SPAN_BYTES, 1 << (bank.size_bytes.bit_length() - 1))

    def read(step: int) -> float:
        return read_ticks(session, bank.origin, span_bytes, step, _READS, LONGEST_SECONDS) / _READS

    straight = pair_ticks(session, _STRAIGHT, LONGEST_SECONDS) / (_PAIR * PAIR_REPEATS)
    call = branch_ticks(session, apart=True, limit_seconds=LONGEST_SECONDS) / LANDINGS
    found = (straight, call, read(WORD_BYTES), read(ANY_WORD))
    return {name: round(one * per_tick, 3) for name, one in zip(_MEASURES, found, strict=True)}


def _compared(switches: Mapping[str, Switch], settings: list[dict[str, Any]]) -> list[str]:
    """All on beside each one off, and beside all off. The first setting has all on."""
    sentences = []
    everything, last = settings[0], settings[-1]
    rows = [(f"without {switches[n].title} ({n})", _without(n, settings)) for n in switches]
    if len(rows) > 1:
        rows.append(("without any", last))
    for name, title in _MEASURES.items():
        others = ", ".join(f"{row[name]:.2f} {text}" for text, row in rows)
        sentences.append(f"{title} takes {everything[name]:.2f} cycles, {others}")
    return sentences


def _without(name: str, settings: list[dict[str, Any]]) -> dict[str, Any]:
    """The setting in which one switch alone is off."""
    wanted = [other for other in settings[0]["on"] if other != name]
    return next(one for one in settings if one["on"] == wanted)


STEP = Step("switches", "prefetch and caches, on and off", _run, asks_contact=True)

"""Reads of each bank, and calls to code in no cache, beside the waits that the chip's file has."""

from __future__ import annotations

from collections.abc import Iterator

from toolchain.boards import Board, Cache, Memory, MemoryKind
from toolchain.boards.memory import Cached
from toolchain.contact.commands import ANY_WORD, LANDINGS, branch_ticks, marched, read_ticks
from toolchain.contact.document import Access
from toolchain.contact.firmware import free_ranges
from toolchain.contact.step import Step
from toolchain.contact.visit import LONGEST_SECONDS, Told, Visit, told
from toolchain.cost.basis import CYCLES
from toolchain.device.build import CACHES
from toolchain.device.link import BoardFaultError
from toolchain.device.session import Session

_READS = 256
_MOST_SPAN_BYTES = 1 << 16
_WORD_BYTES = 4
_FACTOR, _SUMMAND = 1664525, 1013904223
"""Constants of the generator in `contact_read` (Numerical Recipes, 7.1)."""
_AWAY = 1.5
"""Cycles by which a stall may differ from the file's: what the core does beside a read is part."""


def _run(visit: Visit) -> Told:
    session, board, firmware = visit.session, visit.board, visit.firmware
    assert session is not None and firmware is not None
    findings: list[str] = []
    accesses: list[Access] = []
    for bank, start, span_bytes in _spans(visit):
        try:
            if bank.kind is MemoryKind.RAM:  # with an ECC, no word is readable before it is written
                marched(session, start, span_bytes, LONGEST_SECONDS)
            accesses.append(_read(session, board, bank, start, span_bytes))
        except BoardFaultError as error:
            session.greet()
            findings.append(f"{bank.name} cannot be read: {error.fault.reason()}")
    accesses.append(_called(session, board))
    counter = board.counter
    if counter is None or counter.unit != CYCLES:
        facts = ["QEMU counts instructions: an access takes none of its time"]
        return told(findings, facts, {}, accesses=accesses)
    for one in accesses:
        if one.predicted_stall is not None and abs(one.stall - one.predicted_stall) > _AWAY:
            findings.append(
                f"{one.bank}: {one.what} waits {one.stall:.1f} cycles, and the file of the chip "
                f"says {one.predicted_stall}"
            )
    facts = [f"{a.bank}: {a.what} waits {a.stall:.1f} cycles" for a in accesses]
    return told(findings, facts, {}, accesses=accesses)


def _spans(visit: Visit) -> Iterator[tuple[Memory, int, int]]:
    """Each bank that can be read, with the beginning and the bytes (a power of two) of a part."""
    assert visit.firmware is not None
    free = free_ranges(visit.firmware, external=visit.external)
    for bank in visit.board.memories:
        if not bank.holds or (bank.beside and not visit.external):
            continue
        if bank.kind is MemoryKind.FLASH:
            yield bank, bank.origin, _span(bank.size_bytes)
            continue
        parts = [part for part in free if part.bank == bank.name]
        if parts:
            largest = max(parts, key=lambda part: part.size_bytes)
            yield bank, largest.start, _span(largest.size_bytes)


def _span(size_bytes: int) -> int:
    """The largest power of two up to some bytes, of those that are read."""
    return min(1 << (size_bytes.bit_length() - 1), _MOST_SPAN_BYTES)


def _read(session: Session, board: Board, bank: Memory, start: int, span_bytes: int) -> Access:
    """The reads in sequence lie in the other half of the part than those from new lines: a cache
    that no command empties keeps lines."""
    cache = _cache(board, bank, "data")
    line = _line_bytes(bank, cache)
    half_bytes = span_bytes // 2
    count = max(min(_READS, half_bytes // line), 1)
    held = _Held(cache, line, stays=CACHES not in board.firmware_sources)
    found: list[float] = []
    lines: list[float] = []
    for step, at, size_bytes in (
        (line, 0, half_bytes),
        (0, 0, half_bytes),
        (_WORD_BYTES, half_bytes, half_bytes),
        (ANY_WORD, 0, span_bytes),
    ):
        ticks = read_ticks(session, start + at, size_bytes, step, count, LONGEST_SECONDS)
        found.append(_counted(board, ticks, count))
        lines.append(held.lacked(at, size_bytes, step, count) / count)
    return Access(
        bank=bank.name,
        what="a read from a new line",
        first=found[0],
        again=found[1],
        sequential=found[2],
        random=found[3],
        predicted_stall=_stall(bank, cache),
        parts=_parts(bank, line),
        burst_cycles=bank.timing.burst_cycles if bank.timing else 0,
        lines=(lines[0], lines[2], lines[3]),
    )


class _Held:
    """Lines that a cache holds, which forgets the one that was used least recently; without a
    cache, what the bank delivered last. `stays`: it is not emptied before each command.
    """

    def __init__(self, cache: Cache | None, line_bytes: int, *, stays: bool) -> None:
        self._line_bytes, self._stays = line_bytes, stays
        sectors = cache.line_bytes // cache.filled_bytes if cache else 1
        self._sets = cache.sets * sectors if cache else 1
        self._ways = cache.ways if cache else 1
        self._held: dict[int, list[int]] = {}

    def lacked(self, start: int, size_bytes: int, step: int, count: int) -> int:
        """Lines that `count` reads bring, at the offsets of the firmware's `contact_read`."""
        if not self._stays:
            self._held = {}
        lacked, at, state, mask = 0, 0, 1, (size_bytes - 1) & ~3
        for _ in range(count):
            line = (start + (at & mask)) // self._line_bytes
            ways = self._held.setdefault(line % self._sets, [])
            if line in ways:
                ways.remove(line)
            else:
                lacked += 1
            ways.append(line)
            del ways[: -self._ways]
            state = (state * _FACTOR + _SUMMAND) & 0xFFFFFFFF
            at = (state >> 8) & ~3 if step == ANY_WORD else at + step
        return lacked


def _called(session: Session, board: Board) -> Access:
    """Calls to code in flash."""
    bank = board.memories[0]
    apart, same = (
        _counted(board, branch_ticks(session, apart=apart, limit_seconds=LONGEST_SECONDS), LANDINGS)
        for apart in (True, False)
    )
    cache = _cache(board, bank, "instructions")
    return Access(
        bank.name,
        "a call to a new line",
        apart,
        same,
        predicted_stall=_stall(bank, cache),
        parts=_parts(bank, _line_bytes(bank, cache)),
        burst_cycles=bank.timing.burst_cycles if bank.timing else 0,
        lines=(1.0, 0.0, 0.0),
    )


def _counted(board: Board, ticks: int, count: int) -> float:
    """Units of the board's counter for each of `count` accesses."""
    per_tick = board.counter.per_tick if board.counter else 1.0
    return round(ticks * per_tick / count, 3)


def _cache(board: Board, bank: Memory, what: Cached) -> Cache | None:
    """The cache before a bank."""
    return next((c for c in board.caches if bank.name in c.memories and what in c.holds), None)


def _line_bytes(bank: Memory, cache: Cache | None) -> int:
    """Bytes that one access brings: a line of the cache, or what the bank delivers."""
    width = bank.timing.width_bytes if bank.timing else _WORD_BYTES
    return max(cache.filled_bytes if cache else width, width, _WORD_BYTES)


def _parts(bank: Memory, line_bytes: int) -> int:
    """Reads of the bank that bring a line."""
    return -(-line_bytes // bank.timing.width_bytes) if bank.timing else 1


def _stall(bank: Memory, cache: Cache | None) -> int | None:
    """Cycles that the core waits for a new line by the board's file; None where it does not say."""
    if bank.timing is None:
        return None
    parts = _parts(bank, _line_bytes(bank, cache))
    return bank.timing.read_cycles + (parts - 1) * bank.timing.burst_cycles


STEP = Step("access", "reads and calls: waits of each bank", _run, asks_contact=True)

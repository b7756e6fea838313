"""Contents of memory banks: code, weights, data and the arena, in one piece or in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from toolchain.boards import GUARD_BYTES, Board, Content, Memory, MemoryTiming
from toolchain.errors import DoesNotFitError, InputError, Overflow

SECTION_ALIGNMENT_BYTES = 16


@dataclass(frozen=True)
class Layout:
    """The banks of one firmware, by content. `arenas`: one bank for each part of the arena.

    `copies`: by name, the banks to which constants are copied; the names stay in a `merged` layout.
    `code_copy`: the bank to which the kernels' code is copied.
    """

    code: Memory
    weights: Memory
    data: Memory
    arenas: tuple[Memory, ...]
    copies: tuple[tuple[str, Memory], ...] = ()
    code_copy: Memory | None = None

    @property
    def arena(self) -> Memory:
        """The bank of the arena's first part."""
        return self.arenas[0]

    @property
    def banks(self) -> tuple[Memory, ...]:
        """All of them, each once."""
        copies = (bank for _, bank in self.copies)
        code = [] if self.code_copy is None else [self.code_copy]
        parts = (self.code, self.weights, self.data, *self.arenas, *copies, *code)
        named = {bank.name: bank for bank in parts}
        return tuple(named.values())

    def below(self, address: int, size_bytes: int) -> Layout:
        """The layout in a firmware that leaves these bytes to something else.

        A bank that is used and holds them ends where they begin. Raises InputError if nothing is
        left of it, or they end beyond it.
        """

        def shortened(bank: Memory) -> Memory:
            if address + size_bytes <= bank.origin or bank.end <= address:
                return bank
            if address <= bank.origin or bank.end < address + size_bytes:
                raise InputError(
                    f"{size_bytes:,} bytes at {address:#x} do not leave the beginning of "
                    f"{bank.name}, which is {bank.origin:#x} to {bank.end:#x}, to the firmware"
                )
            return replace(bank, size_bytes=address - bank.origin)

        return Layout(
            shortened(self.code),
            shortened(self.weights),
            shortened(self.data),
            tuple(map(shortened, self.arenas)),
            tuple((name, shortened(bank)) for name, bank in self.copies),
            self.code_copy,
        )

    def guard_bytes(self, bank: Memory) -> int:
        """The bytes at the top of a bank that the guard below the stack takes, in a `merged`
        layout.
        """
        return _guarded(bank, self.data)

    def merged(self) -> Layout:
        """The layout in which contents of a run of adjacent banks that the arena takes move to that
        run.
        """

        def outer(bank: Memory) -> Memory:
            return next((run for run in self.arenas if run.covers(bank)), bank)

        copies = tuple((name, outer(bank)) for name, bank in self.copies)
        return replace(
            self,
            code=outer(self.code),
            weights=outer(self.weights),
            data=outer(self.data),
            copies=copies,
        )


@dataclass(frozen=True)
class BankNames:
    """A layout by the names of its banks, as another board with the same banks can have it."""

    code: str
    weights: str
    data: str
    arenas: tuple[str, ...]
    copies: tuple[str, ...] = ()
    code_copy: str = ""

    @classmethod
    def of(cls, banks: Layout) -> BankNames:
        """The names of a layout that is not `merged`."""
        return cls(
            banks.code.name,
            banks.weights.name,
            banks.data.name,
            tuple(bank.name for bank in banks.arenas),
            tuple(name for name, _ in banks.copies),
            "" if banks.code_copy is None else banks.code_copy.name,
        )

    def on(self, board: Board) -> Layout:
        """The layout on a board. Raises InputError where it has no such bank."""

        def bank(name: str, content: Content) -> Memory:
            known = {bank.name: bank for bank in _candidates(board, content)}
            if name not in known:
                raise InputError(f"{board.name} has no bank {name} for {content.value}")
            return known[name]

        return Layout(
            bank(self.code, Content.CODE),
            bank(self.weights, Content.WEIGHTS),
            bank(self.data, Content.DATA),
            tuple(bank(name, Content.ARENA) for name in self.arenas),
            tuple((name, bank(name, Content.COPIES)) for name in self.copies),
            bank(self.code_copy, Content.COPIES) if self.code_copy else None,
        )


@dataclass(frozen=True)
class Part:
    """Bytes that need a place. `bank`: the only bank allowed, if set."""

    content: Content
    size_bytes: int
    bank: str = ""


@dataclass(frozen=True)
class Room:
    """Space for the arena in one bank, or in adjacent banks of one speed."""

    bank: Memory
    free_bytes: int


def _span(first: Memory, second: Memory) -> Memory:
    return Memory(
        f"{first.name}_{second.name}",
        first.origin,
        first.size_bytes + second.size_bytes,
        first.kind,
        first.holds & second.holds,
        max(first.access_cycles, second.access_cycles),
        _slower(first.timing, second.timing),
    )


def _slower(first: MemoryTiming | None, second: MemoryTiming | None) -> MemoryTiming | None:
    if first is None or second is None:
        return None
    return max(first, second, key=lambda timing: (timing.read_cycles, timing.burst_cycles))


def _candidates(board: Board, content: Content) -> list[Memory]:
    """Banks that may hold `content`, best first, then runs of banks that touch, shortest first."""
    single = [m for m in board.memories if content in m.holds]
    spans: list[Memory] = []
    for start in single:
        run = start
        while following := next((m for m in single if m.origin == run.end), None):
            run = _span(run, following)
            spans.append(run)
    return single + sorted(spans, key=lambda m: m.size_bytes)


def _overlap(first: Memory, second: Memory) -> bool:
    return first.origin < second.end and second.origin < first.end


def _guarded(bank: Memory, data: Memory) -> int:
    """Bytes at the top of a bank that the guard takes below the stack in the bank of data."""
    if bank.end > data.origin:
        return 0
    return min(max(bank.end - (data.origin - GUARD_BYTES), 0), bank.size_bytes)


def _guard_in(bank: Memory, taken: Sequence[tuple[Part, Memory]]) -> int:
    """As `_guarded`, for a bank and the parts placed so far."""
    runs = [at for part, at in taken if part.content is Content.ARENA]
    for part, at in taken:
        if part.content is Content.DATA:
            # A run of banks for the arena takes what lies in it to its own bottom (`merged`).
            return _guarded(bank, next((run for run in runs if run.covers(at)), at))
    return 0


def _has_room(bank: Memory, taken: Sequence[tuple[Part, Memory]]) -> bool:
    """Whether a bank holds the guard and the parts that overlap it, but for runs beyond it."""
    longer = [at for _, at in taken if at.covers(bank) and at != bank]
    held = sum(part.size_bytes for part, at in taken if _overlap(at, bank) and at not in longer)
    return held + _guard_in(bank, taken) <= bank.size_bytes


def _placements(
    board: Board, parts: Sequence[Part], taken: Sequence[tuple[Part, Memory]]
) -> Iterator[list[Memory]]:
    """All ways to give each part a bank, the best for the first part first."""
    if not parts:
        yield []
        return
    part, *others = parts
    for bank in _candidates(board, part.content):
        if part.bank and bank.name != part.bank:
            continue
        used = sum(held.size_bytes for held, at in taken if _overlap(at, bank))
        if used + part.size_bytes > bank.size_bytes:
            continue
        placed = [*taken, (part, bank)]
        if not all(_has_room(at, placed) for _, at in placed):
            continue
        for rest in _placements(board, others, placed):
            yield [bank, *rest]


_Lack = tuple[str, Overflow]
"""The content that does not fit, in words, and the memory that it overflows."""


def _lack(board: Board, content: str, parts: Sequence[Part]) -> _Lack:
    """The bytes missing in the largest bank that could hold the largest part, or all."""
    names = [{m.name for m in _candidates(board, part.content)} for part in parts]
    shared = set.intersection(*names)
    largest = max(parts, key=lambda part: part.size_bytes)
    banks = _candidates(board, largest.content)
    bank = max(banks, key=lambda m: (m.name == largest.bank, m.size_bytes))
    total = sum(part.size_bytes for part in parts if part.bank in ("", bank.name))
    need = total if bank.name in shared else largest.size_bytes
    if need <= bank.size_bytes:
        need = total
    is_flash = largest.content in (Content.CODE, Content.WEIGHTS)
    return content, Overflow(bank.name, need, bank.size_bytes, is_flash)


def _does_not_fit(board: Board, lacks: Sequence[_Lack], *, at_least: bool) -> DoesNotFitError:
    least = "at least " if at_least else ""
    needs = ((content, f"{least}{lack.need_bytes:,}", lack) for content, lack in lacks)
    told = "; ".join(
        f"{content} need {need} bytes: {lack.excess_bytes:,} more than the "
        f"{lack.room_bytes:,} bytes of {lack.memory} on {board.name}"
        for content, need, lack in needs
    )
    return DoesNotFitError(told, overflows=[lack for _, lack in lacks])


def layout(
    board: Board,
    *,
    code_bytes: int,
    weight_bytes: int,
    data_bytes: int,
    arena_bytes: int = 0,
    arena_banks: Sequence[tuple[str, int]] = (),
    copied: Sequence[tuple[str, int]] = (),
    code_copy: tuple[str, int] = ("", 0),
    at_least: bool = False,
) -> Layout:
    """The layout that gives each part the first bank, in the board's order, that has room.

    `data_bytes` includes the stack. The arena is in one piece, or has so many bytes in each of the
    named `arena_banks`; `copied` constants take so many in each of theirs, and a copy of code in
    its own, the whole of it where the core fetches by another address. `at_least`: these are lower
    bounds. Raises DoesNotFitError, with every memory that overflows and the bytes that are missing
    there.
    """
    flash = [Part(Content.CODE, code_bytes), Part(Content.WEIGHTS, weight_bytes)]
    arenas = [Part(Content.ARENA, size, name) for name, size in arena_banks or (("", arena_bytes),)]
    copies = [Part(Content.COPIES, size, name) for name, size in copied]
    home = next((bank for bank in board.memories if bank.name == code_copy[0]), None)
    code_part = []
    if home is not None:
        size = code_copy[1] if home.code_origin == home.origin else home.size_bytes
        code_part = [Part(Content.COPIES, size, home.name)]
    ram = [Part(Content.DATA, data_bytes), *arenas, *copies, *code_part]
    chosen = next(_placements(board, [*flash, *ram], []), None)
    if chosen is None:
        kinds = (("code and weights", flash), ("arena, data and stack", ram))
        alone = [kind for kind in kinds if next(_placements(board, kind[1], []), None) is None]
        lacks = [_lack(board, *kind) for kind in alone or kinds[1:]]
        raise _does_not_fit(board, lacks, at_least=at_least)
    code, weights, data, *others = chosen
    banks = others[len(arenas) :]
    named = tuple((part.bank, bank) for part, bank in zip(copies, banks, strict=False))
    return Layout(code, weights, data, tuple(others[: len(arenas)]), named, home)


def arena_rooms(
    board: Board, *, code_bytes: int, weight_bytes: int, data_bytes: int
) -> Iterator[tuple[Room, ...]]:
    """The space left for the arena, fastest first, for each way to lay out the rest of a firmware.

    Adjacent banks of one speed are one room: a tensor may lie across their border.
    """
    parts = [
        Part(Content.CODE, code_bytes),
        Part(Content.WEIGHTS, weight_bytes),
        Part(Content.DATA, data_bytes),
    ]
    runs = _alike(board)
    seen: set[tuple[Room, ...]] = set()
    for placed in _placements(board, parts, []):
        if any(_overlap(bank, run) and not run.covers(bank) for bank in placed for run in runs):
            continue
        rooms = []
        taken = list(zip(parts, placed, strict=True))
        with_runs = [*taken, *((Part(Content.ARENA, 0), run) for run in runs)]
        for run in runs:
            inside = [part.size_bytes for part, bank in taken if _overlap(bank, run)]
            used = sum(inside) + SECTION_ALIGNMENT_BYTES * len(inside) + _guard_in(run, with_runs)
            if run.size_bytes > used:
                rooms.append(Room(run, run.size_bytes - used))
        ordered = tuple(sorted(rooms, key=lambda room: room.bank.access_cycles))
        if ordered not in seen:
            seen.add(ordered)
            yield ordered


def _alike(board: Board) -> list[Memory]:
    """Banks for the arena, those of one speed that touch joined."""
    runs: list[Memory] = []
    banks = [m for m in board.memories if Content.ARENA in m.holds]
    for bank in sorted(banks, key=lambda m: m.origin):
        if runs and runs[-1].end == bank.origin and runs[-1].access_cycles == bank.access_cycles:
            runs[-1] = _span(runs[-1], bank)
        else:
            runs.append(bank)
    return sorted(runs, key=lambda run: min(map(banks.index, filter(run.covers, banks))))

"""Pairs of instructions beside the core's timing table."""

from __future__ import annotations

from toolchain.contact.commands import pair_ticks
from toolchain.contact.document import Pair
from toolchain.contact.firmware import PAIR_REPEATS
from toolchain.contact.firmware import pairs as pairs_of
from toolchain.contact.step import Step
from toolchain.contact.visit import LONGEST_SECONDS, Told, Visit, told
from toolchain.cost.basis import CYCLES
from toolchain.cycles.core_timing import timing_of

_AWAY = 0.05
"""Cycles of a pair by which a table may be off: the ends of a run are part of what is timed."""


def _run(visit: Visit) -> Told:
    session, board, firmware = visit.session, visit.board, visit.firmware
    assert session is not None and firmware is not None
    timing, counter = timing_of(board.core.name), board.counter
    per_tick = counter.per_tick if counter else 1.0
    timed: list[Pair] = []
    for number, code in enumerate(pairs_of(firmware)):
        ticks = pair_ticks(session, number, LONGEST_SECONDS)
        cycles = sum(timing.block_cycles(code.instructions, repeats=False)) if timing else None
        predicted = None if cycles is None else round(cycles / PAIR_REPEATS, 3)
        timed.append(Pair(code.name, round(ticks * per_tick / PAIR_REPEATS, 3), predicted))
    if counter is None or counter.unit != CYCLES:
        return told([], ["QEMU counts instructions, two of each pair"], {}, pairs=timed)
    away = [p for p in timed if p.predicted is not None and abs(p.count - p.predicted) > _AWAY]
    findings = [
        f"{p.name}: {p.count:.2f} cycles, and the core's timing table says {p.predicted:.2f}"
        for p in away
    ]
    if away:
        findings.append(
            "code that is fetched from a memory that waits, with no cache before it, takes longer "
            "than the table"
        )
    return told(findings, [f"{len(timed)} pairs of instructions were timed"], {}, pairs=timed)


STEP = Step("pairs", "pairs of instructions", _run, asks_contact=True)

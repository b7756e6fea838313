"""The choice of a memory bank for each block, as constraint programs for CP-SAT.

`assign` knows only the load of each step, not offsets; nearly always each bank can then be placed
within its load. `place_jointly` decides offsets too, for the remaining cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toolchain import search
from toolchain.ir import ArenaProblem, Bank, SharedPair
from toolchain.ir.memory import together_bytes
from toolchain.packages import SOLVER, lazy
from toolchain.search import Work

if TYPE_CHECKING:
    from ortools.sat.python import cp_model
else:
    cp_model = lazy("ortools.sat.python.cp_model", SOLVER)

_NEARER = 1000
"""How much more a cycle weighs than a byte in a later bank."""
_SECONDS_PER_UNIT = 1.0
"""Seconds that one unit of CP-SAT's deterministic time takes."""
_PER_BYTE = 4
"""A byte more of RAM must save so many cycles."""


def nonempty_blocks(problem: ArenaProblem) -> list[int]:
    """Indices of the blocks that have bytes and are live at some step, ascending."""
    return [i for i, b in enumerate(problem.blocks) if b.start < b.end and b.size_bytes]


def load_bytes(
    problem: ArenaProblem, chosen: Sequence[int], step: int
) -> tuple[int, list[tuple[SharedPair, int]]]:
    """Bytes of the chosen blocks that are live at a step, and what each sharing pair subtracts."""
    blocks, among = problem.blocks, set(chosen)
    alive = {i for i in among if blocks[i].start <= step < blocks[i].end}
    savings = []
    for pair in filter(problem.successive, problem.shared):
        if pair.dying in alive and pair.born in alive:
            sizes = blocks[pair.dying].size_bytes, blocks[pair.born].size_bytes
            saved = sum(sizes) - together_bytes(*sizes, pair.lead_bytes, pair.exact)
            if saved > 0:
                savings.append((pair, saved))
    return sum(blocks[i].size_bytes for i in alive), savings


def assign(
    problem: ArenaProblem,
    banks: Sequence[Bank],
    limits: Sequence[int],
    accesses: Sequence[int],
    seconds: float,
) -> tuple[int, ...] | None:
    """A bank for each block such that all accesses take the fewest cycles; None if there is none.

    Bytes of RAM have a price in cycles, so that none are used where they gain little. At no step do
    the blocks of a bank need more than its limit. Pairs that share bytes save them only within one
    bank.
    """
    blocks, live = problem.blocks, nonempty_blocks(problem)
    model = cp_model.CpModel()
    inside = _members(model, problem, live, limits)
    used = [model.new_int_var(0, max(limit, 0), "") for limit in limits]
    together: dict[tuple[int, int, int], Any] = {}
    for step in sorted({blocks[i].start for i in live}):
        _, savings = load_bytes(problem, live, step)
        for k, most in enumerate(used):
            terms = [
                blocks[i].size_bytes * inside[i][k]
                for i in live
                if blocks[i].start <= step < blocks[i].end
            ]
            for pair, saved in savings:
                key = (pair.dying, pair.born, k)
                if key not in together:
                    together[key] = model.new_bool_var("")
                    model.add_implication(together[key], inside[pair.dying][k])
                    model.add_implication(together[key], inside[pair.born][k])
                terms.append(-saved * together[key])
            model.add(sum(terms) <= most)
    model.minimize(
        sum(
            (accesses[i] * bank.access_cycles * _NEARER + k * blocks[i].size_bytes) * inside[i][k]
            for i in live
            for k, bank in enumerate(banks)
        )
        + _PER_BYTE * _NEARER * sum(used)
    )
    solver, status = search.solve(model, Work(seconds), _SECONDS_PER_UNIT)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    return _banks_of(solver, problem, inside)


def place_jointly(
    problem: ArenaProblem, banks: Sequence[Bank], accesses: Sequence[int], seconds: float
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Banks and offsets of all blocks; None if none were found within the work limit."""
    blocks, live = problem.blocks, nonempty_blocks(problem)
    sizes = [bank.size_bytes for bank in banks]
    successive = filter(problem.successive, problem.shared)
    shared = {(pair.dying, pair.born): pair for pair in successive}
    model = cp_model.CpModel()
    inside = _members(model, problem, live, sizes)
    offsets: dict[int, Any] = {}
    for i in live:
        unit = blocks[i].alignment_bytes
        granule = model.new_int_var(0, max(0, max(sizes) - blocks[i].size_bytes) // unit, "")
        offsets[i] = granule * unit
        for k, size in enumerate(sizes):
            end = offsets[i] + blocks[i].size_bytes
            model.add(end <= size).only_enforce_if(inside[i][k])
    for position, i in enumerate(live):
        for j in live[:position]:
            if min(blocks[i].end, blocks[j].end) <= max(blocks[i].start, blocks[j].start):
                continue
            apart = model.new_bool_var("")
            for k in range(len(banks)):
                model.add(inside[i][k] + inside[j][k] <= 1).only_enforce_if(apart)
            choices = [apart]
            for low, high in ((i, j), (j, i)):
                literal = model.new_bool_var("")
                choices.append(literal)
                gap = blocks[low].size_bytes
                pair = shared.get((high, low))
                if pair is not None and pair.exact:
                    tied = model.new_bool_var("")
                    choices.append(tied)
                    model.add(offsets[high] == offsets[low] + pair.lead_bytes).only_enforce_if(tied)
                elif pair is not None:
                    gap = min(gap, pair.lead_bytes)
                model.add(offsets[high] >= offsets[low] + gap).only_enforce_if(literal)
            model.add_bool_or(choices)
    model.minimize(
        sum(
            accesses[i] * bank.access_cycles * inside[i][k]
            for i in live
            for k, bank in enumerate(banks)
        )
    )
    solver, status = search.solve(model, Work(seconds), _SECONDS_PER_UNIT)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None
    positions = [0] * len(blocks)
    for i in live:
        positions[i] = solver.value(offsets[i])
    return _banks_of(solver, problem, inside), tuple(positions)


def _members(
    model: Any, problem: ArenaProblem, live: Sequence[int], sizes: Sequence[int]
) -> dict[int, list[Any]]:
    """A literal for each block and each bank that is large enough for it; exactly one is true."""
    inside = {}
    for i in live:
        inside[i] = [model.new_bool_var("") for _ in sizes]
        model.add_exactly_one(inside[i])
        for literal, size in zip(inside[i], sizes, strict=True):
            if problem.blocks[i].size_bytes > size:
                model.add(literal == 0)
    return inside


def _banks_of(solver: Any, problem: ArenaProblem, inside: dict[int, list[Any]]) -> tuple[int, ...]:
    banks = [0] * len(problem.blocks)
    for i, literals in inside.items():
        banks[i] = next(k for k, literal in enumerate(literals) if solver.value(literal))
    return tuple(banks)

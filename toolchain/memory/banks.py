"""Spreading the arena over a board's memory banks, if one is too small or another is faster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.arena import Allocator
from toolchain.arena.banks.spread import spread
from toolchain.boards import Board, Content
from toolchain.errors import DoesNotFitError
from toolchain.ir import ArenaPlan, ArenaProblem, Bank, Graph, MemoryProblem
from toolchain.ir.arena import arena_problem
from toolchain.ir.banks import check_spread, spread_plan
from toolchain.memory.bank_layout import Layout, arena_rooms
from toolchain.memory.firmware_size import (
    code_estimate_bytes,
    firmware_data_bytes,
    firmware_layout,
)
from toolchain.memory.plan import Plan
from toolchain.memory.traffic import accesses


@dataclass(frozen=True)
class Needs:
    """Bytes of a firmware without its arena."""

    code_bytes: int
    weight_bytes: int
    data_bytes: int


def faster_bank(board: Board, chosen: Layout) -> bool:
    """Whether a bank that may hold an arena is faster than the one that holds all of it."""
    return any(
        Content.ARENA in bank.holds and bank.access_cycles < chosen.arena.access_cycles
        for bank in board.memories
    )


def may_spread(plan: Plan, board: Board) -> bool:
    """Whether an arena may be spread over banks, and no bank holds all of it, or a faster bank
    could hold a part. That of an input that arrives by rows may not.
    """
    if board.is_host or plan.graph.pushed is not None:
        return False
    try:
        return faster_bank(board, firmware_layout(board, [plan]))
    except DoesNotFitError:
        return True


def spread_arena(
    plan: Plan,
    problem: MemoryProblem,
    board: Board,
    allocator: Allocator,
    time_limit_seconds: float | None = None,
) -> ArenaPlan | None:
    """The arena of a plan in more than one bank (`over_banks`)."""
    views = len(plan.operators) - plan.calls
    return over_banks(
        plan.graph,
        problem,
        plan.schedule.order,
        frozenset(op.name for op in plan.operators if op.is_view),
        board,
        Needs(code_estimate_bytes(plan), plan.weight_bytes, firmware_data_bytes(plan) + 4 * views),
        allocator,
        time_limit_seconds,
    )


def over_banks(
    graph: Graph,
    problem: MemoryProblem,
    order: Sequence[int],
    idle: frozenset[str],
    board: Board,
    needs: Needs,
    allocator: Allocator,
    time_limit_seconds: float | None = None,
) -> ArenaPlan | None:
    """The arena in more than one bank, its most accessed tensors in the fastest; None if none is
    found.

    `idle` operators have no code, because their outputs are laid in place. The result has passed
    the checker; raises ValueError if it does not.
    """
    blocks = arena_problem(problem, order)
    heat = _accesses(graph, problem, order, blocks, idle)
    rooms_of = arena_rooms(
        board,
        code_bytes=needs.code_bytes,
        weight_bytes=needs.weight_bytes,
        data_bytes=needs.data_bytes,
    )
    for rooms in rooms_of:
        banks = [Bank(r.bank.name, r.free_bytes, r.bank.access_cycles) for r in rooms]
        if len(banks) < 2:
            continue
        spread_arena = spread(blocks, banks, heat, allocator, time_limit_seconds)
        if spread_arena is not None:
            check_spread(blocks, spread_arena)
            plan = spread_plan(problem, order, spread_arena, blocks)
            return plan if len(plan.parts) > 1 else None
    return None


def _accesses(
    graph: Graph,
    problem: MemoryProblem,
    order: Sequence[int],
    blocks: ArenaProblem,
    idle: frozenset[str],
) -> list[int]:
    """Bytes read and written in each block during one run."""
    block_of = {m.tensor: i for i, buffer in enumerate(problem.buffers) for m in buffer.members}
    total = [0] * len(blocks.blocks)
    scratch = len(problem.buffers)
    for index in order:
        op = graph.ops[index]
        counts = accesses(op, graph, problem.scratch_bytes[index])
        if op.name not in idle:
            for name, count in counts.tensors.items():
                if name in block_of:
                    total[block_of[name]] += count
        if problem.scratch_bytes[index]:
            total[scratch] += counts.scratch
            scratch += 1
    return total

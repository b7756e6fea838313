"""Order and placement together, to find the smallest arena over several orders.

The order with the smallest peak may have no placement as small as its peak, while another order
with the same peak has one. Such orders are tried by moving one operator at a time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from toolchain.arena import Allocator
from toolchain.ir import ArenaProblem, MemoryProblem, Placement, Schedule
from toolchain.ir.arena import arena_problem, check_placement
from toolchain.ir.memory import check_order, peak_bytes
from toolchain.search import Work

ORDERS = 24
"""Most other orders that are tried."""
SECONDS = 2.0
"""Work limit for all orders together, in seconds' worth; each gets a sixth of it."""
_NS_A_MOVE, _NS_A_PEAK = 350, 4500
"""To move an operator, and to find the peak of an order, for each operator of the graph."""
_MOVES_PER_OPERATOR = 8


@dataclass(frozen=True)
class Arrangement:
    """An order, the blocks that its buffers become, and where they lie."""

    schedule: Schedule
    blocks: ArenaProblem
    placement: Placement


def place(
    problem: MemoryProblem,
    schedule: Schedule,
    allocator: Allocator,
    time_limit_seconds: float | None = None,
    capacity_bytes: int | None = None,
) -> Arrangement:
    """Place the buffers of one order, and check order and placement.

    Raises ValueError if either is invalid.
    """
    check_order(problem, schedule.order)
    blocks = arena_problem(problem, schedule.order)
    lasting = _lasting(problem, blocks)
    placement = _above(lasting, blocks, allocator, time_limit_seconds, capacity_bytes)
    check_placement(blocks, placement)
    return Arrangement(schedule, blocks, placement)


def _lasting(problem: MemoryProblem, blocks: ArenaProblem) -> tuple[int, ...]:
    """The blocks of states, and of what else outlives a run, if those above them stay aligned."""
    lasting = [
        index
        for index, buffer in enumerate(problem.buffers)
        if buffer.from_start and buffer.to_end and not blocks.blocks[index].profile
    ]
    alignment = max((block.alignment_bytes for block in blocks.blocks), default=1)
    fit = all(blocks.blocks[index].size_bytes % alignment == 0 for index in lasting)
    return tuple(lasting) if fit else ()


def _above(
    lasting: tuple[int, ...],
    blocks: ArenaProblem,
    allocator: Allocator,
    time_limit_seconds: float | None,
    capacity_bytes: int | None,
) -> Placement:
    """The blocks that live throughout at the bottom, all others above them. No placement is smaller
    for having them elsewhere: what lies above one could be moved down by its size.
    """
    if not lasting:
        return allocator.place(blocks, time_limit_seconds, capacity_bytes)
    rest = [index for index in range(len(blocks.blocks)) if index not in lasting]
    offsets, bottom = [0] * len(blocks.blocks), 0
    for index in lasting:
        offsets[index] = bottom
        bottom += blocks.blocks[index].size_bytes
    capacity = None if capacity_bytes is None else max(capacity_bytes - bottom, 1)
    placed = allocator.place(blocks.of(rest), time_limit_seconds, capacity)
    for index, offset in zip(rest, placed.offsets, strict=True):
        offsets[index] = bottom + offset
    return replace(
        placed,
        offsets=tuple(offsets),
        size_bytes=bottom + placed.size_bytes,
        lower_bound_bytes=bottom + placed.lower_bound_bytes,
    )


def compact(problem: MemoryProblem, first: Arrangement, allocator: Allocator) -> Arrangement:
    """The smallest arena of `first` and other orders; `first` itself if its arena equals its
    peak.
    """
    best, work = first, Work(SECONDS)
    orders = _orders(problem, first.schedule.order, random.Random(1), work)
    for _ in range(ORDERS):
        if best.placement.size_bytes <= first.schedule.peak_bytes:
            break
        order = _next_below(problem, orders, best.placement.size_bytes, work)
        if order is None:
            break
        peak = peak_bytes(problem, order)
        made = place(
            problem,
            replace(first.schedule, order=order, peak_bytes=peak),
            allocator,
            SECONDS / 6,
            first.schedule.peak_bytes,
        )
        work.spend_seconds(made.placement.work_seconds)
        if made.placement.size_bytes < best.placement.size_bytes:
            best = made
    return best


def _next_below(
    problem: MemoryProblem, orders: Iterator[tuple[int, ...]], size_bytes: int, work: Work
) -> tuple[int, ...] | None:
    """The next order whose peak is below an arena that is known; None where there are no more, or
    the work is used up."""
    for order in orders:
        if work.over:
            break
        work.spend(_NS_A_PEAK * len(order))
        if peak_bytes(problem, order) < size_bytes:
            return order
    return None


def _orders(
    problem: MemoryProblem, start: tuple[int, ...], rng: random.Random, work: Work
) -> Iterator[tuple[int, ...]]:
    """Orders one move from `start`, then two, and so on; none twice. Ends where few are left."""
    follows: list[list[int]] = [[] for _ in problem.ops]
    for op, before in enumerate(problem.predecessors):
        for other in before:
            follows[other].append(op)
    seen, reached = {start}, [start]
    while reached:
        at = reached[len(reached) - 1 - int(rng.random() ** 2 * len(reached))]
        for _ in range(_MOVES_PER_OPERATOR * len(start)):
            work.spend(_NS_A_MOVE * len(at))
            moved = _move(problem, follows, at, rng)
            if moved not in seen:
                seen.add(moved)
                reached.append(moved)
                yield moved
                break
        else:
            reached.remove(at)


def _move(
    problem: MemoryProblem, follows: list[list[int]], order: tuple[int, ...], rng: random.Random
) -> tuple[int, ...]:
    """Move one operator to another place between its predecessors and its successors."""
    position = {op: step for step, op in enumerate(order)}
    op = rng.choice(order)
    first = max((position[other] for other in problem.predecessors[op]), default=-1) + 1
    last = min((position[other] for other in follows[op]), default=len(order)) - 1
    rest = [other for other in order if other != op]
    rest.insert(rng.randint(first, last), op)
    return tuple(rest)

"""Bytes of a firmware, estimated before it is compiled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Board, Content, Core
from toolchain.boards import board as find_board
from toolchain.errors import DoesNotFitError, Overflow
from toolchain.ir import ArenaPart, Graph
from toolchain.ir.values import identity_of
from toolchain.kernels.code_sizes import sizes_of
from toolchain.memory.bank_layout import SECTION_ALIGNMENT_BYTES, Layout, layout
from toolchain.memory.plan import Plan
from toolchain.ops import spec_of
from toolchain.packages import SOLVER

STACK_BYTES = 2048
"""Reserved for the stack; the firmware paints it and reports how much was used."""

_FIRMWARE_DATA_BYTES = 448
_RUN_BYTES, _BYTES_PER_OPERATOR = 200, 46
"""Code of a model that runs its operators, and of the call of one; this and the figures below are
those of linked firmware (docs/flash.md has the errors)."""
_BYTES_PER_SHARED_CALL, _BYTES_PER_BLOCK = 80, 2
"""Bytes that the call of an operator in blocks takes more, and bytes of a step."""
_OWN_CODE_BYTES = 150
"""Code of an operator that calls no function but computes by itself."""


@dataclass(frozen=True)
class Code:
    """Estimated bytes of code of a firmware. `functions`: of each C function that is linked, the
    largest first; `calls`: the model's own functions, which call them; `rest`: the firmware."""

    functions: Mapping[str, int]
    calls: int
    rest: int

    @property
    def size_bytes(self) -> int:
        return sum(self.functions.values()) + self.calls + self.rest


def code_of(*plans: Plan) -> Code:
    """Estimated code of the firmware of models for one board: each function once, as measured in
    objects of the board's core."""
    target = find_board(plans[0].board)
    computed = (op for plan in plans for op in plan.operators if not op.is_view)
    called = {function for op in computed for function in op.functions}
    sizes = sizes_of(target.core)
    calls = sum(map(_calls_bytes, plans))
    return Code(sizes.linked(called), calls, sizes.around(target.name))


def _calls_bytes(plan: Plan) -> int:
    """Bytes of the generated functions of a model."""
    blocks = plan.calls if plan.calls > plan.counted else 0
    ops = zip(plan.graph.ops, plan.operators, strict=True)
    parts = Counter(op.counted_as for op, planned in ops if not planned.is_view)
    shared = sum(count > 1 for count in parts.values())
    own = sum(not (op.is_view or op.functions) for op in plan.operators)
    return (
        _RUN_BYTES
        + _BYTES_PER_OPERATOR * plan.counted
        + _BYTES_PER_SHARED_CALL * shared
        + _BYTES_PER_BLOCK * blocks
        + _OWN_CODE_BYTES * own
    )


def code_estimate_bytes(*plans: Plan) -> int:
    """Estimated bytes of code of the firmware of models for one board."""
    return code_of(*plans).size_bytes


def pushed_bytes(plan: Plan) -> int:
    """Bytes of an input that arrives by rows: not in the arena; the firmware that the serial
    protocol talks to holds all of it beside.
    """
    pushed = plan.graph.pushed
    return 0 if pushed is None else plan.graph.tensors[pushed.input].size_bytes


def firmware_data_bytes(plan: Plan) -> int:
    """.data, .bss and stack of the firmware in bytes, without the arena."""
    target = find_board(plan.board)
    count_bytes = target.counter.count_bytes if target.counter else 0
    return least_data_bytes() + count_bytes * plan.counted


def least_data_bytes() -> int:
    """Data and stack of a firmware that counts no operator, in bytes."""
    return STACK_BYTES + _FIRMWARE_DATA_BYTES


def firmware_layout(
    board: Board,
    plans: Sequence[Plan],
    stack_bytes: int = STACK_BYTES,
    more_code_bytes: int = 0,
    more_data_bytes: int = 0,
) -> Layout:
    """The banks that hold each part of a firmware whose models share one arena.

    Raises DoesNotFitError, with the bytes that are missing. The code's size is an estimate, to
    which `more_code_bytes` are added. `more_data_bytes`: what the firmware holds beside.
    """
    return layout(
        board,
        code_bytes=code_estimate_bytes(*plans) + more_code_bytes,
        weight_bytes=sum(plan.weight_bytes for plan in plans),
        data_bytes=max(map(firmware_data_bytes, plans))
        - STACK_BYTES
        + stack_bytes
        + more_data_bytes,
        arena_banks=shared_arena(plans).banks,
        copied=_copied(plans),
        code_copy=next(((c.code_in, c.code_bytes) for c in (p.copied for p in plans)), ("", 0)),
    )


def _copied(plans: Sequence[Plan]) -> tuple[tuple[str, int], ...]:
    """Bytes of constants in RAM, by bank."""
    sizes: dict[str, int] = {}
    for name, size in (pair for plan in plans for pair in plan.copied.banks):
        sizes[name] = sizes.get(name, SECTION_ALIGNMENT_BYTES) + size
    return tuple(sizes.items())


@dataclass(frozen=True)
class SharedArena:
    """Places of several models' arenas in one shared arena.

    `parts`: for each model its parts, with the bank of each. `offsets`: where each of them begins
    in the shared part. `banks`: bytes of each bank that is used; an arena in one piece is in the
    bank '', which stands for any.
    """

    parts: tuple[tuple[ArenaPart, ...], ...]
    offsets: tuple[tuple[int, ...], ...]
    banks: tuple[tuple[str, int], ...]

    @property
    def size_bytes(self) -> int:
        return sum(size for _, size in self.banks)


def shared_arena(plans: Sequence[Plan]) -> SharedArena:
    """One arena for models that run one at a time.

    All models begin at its start, except those that keep state between runs: these have a part
    each, behind the others. If some are spread over banks, a model in one piece goes to the bank of
    which they take most.
    """
    demand: dict[str, int] = {}
    for part in (part for plan in plans for part in plan.arena.parts):
        demand[part.bank] = max(demand.get(part.bank, 0), part.size_bytes)
    home = max(demand, key=lambda bank: demand[bank], default="")
    parts = [p.arena.parts or (ArenaPart(home, 0, p.arena.size_bytes),) for p in plans]
    sizes = dict.fromkeys(demand or (home,), 0)
    for plan, held in zip(plans, parts, strict=True):
        if not plan.graph.states:
            for part in held:
                sizes[part.bank] = max(sizes[part.bank], part.size_bytes)
    offsets = []
    for plan, held in zip(plans, parts, strict=True):
        begins = [0] * len(held)
        if plan.graph.states:
            for index, part in enumerate(held):
                unit = SECTION_ALIGNMENT_BYTES
                begins[index] = -(-sizes[part.bank] // unit) * unit
                sizes[part.bank] = begins[index] + part.size_bytes
        offsets.append(tuple(begins))
    return SharedArena(tuple(parts), tuple(offsets), tuple(sizes.items()))


@dataclass(frozen=True)
class MemoryNeed:
    """All RAM (.data, .bss, arena, stack, copies of constants) and flash; `code_bytes` is flash
    without weights.

    `estimated` before linking; afterwards the figures are those of the linked ELF.
    """

    ram_bytes: int
    flash_bytes: int
    code_bytes: int
    estimated: bool


def ram_bytes(plan: Plan) -> int:
    """Estimated RAM of the firmware: arena, data, stack, and copies of constants."""
    return plan.arena.size_bytes + firmware_data_bytes(plan) + plan.copied.size_bytes


def estimated_need(plan: Plan) -> MemoryNeed:
    """RAM and flash of the firmware before it is linked."""
    code = code_estimate_bytes(plan)
    return MemoryNeed(
        ram_bytes=ram_bytes(plan),
        flash_bytes=code + plan.weight_bytes,
        code_bytes=code,
        estimated=True,
    )


def check_fit(plan: Plan) -> Layout | None:
    """The banks that hold each part of the firmware; None on the host, which has no limit.

    The size of the code is an estimate. Raises DoesNotFitError, which says how many bytes are
    missing, which step holds the peak, and what could help.
    """
    target = find_board(plan.board)
    if target.is_host:
        return None
    try:
        return firmware_layout(target, [plan])
    except DoesNotFitError as error:
        lines = [_does_not_fit(plan.graph, target, error)]
        remedies: list[str] = []
        operator = ""
        flash = next((lack for lack in error.overflows if lack.is_flash), None)
        ram = next((lack for lack in error.overflows if not lack.is_flash), None)
        if ram is not None:
            if plan.schedule.order:
                op = plan.graph.ops[plan.schedule.order[plan.peak_step]]
                operator = op.name
                lines.append(
                    f"The peak of {plan.step_bytes[plan.peak_step]:,} bytes is at step "
                    f"{plan.peak_step}, {op.kind} {op.name!r}."
                )
            banks = [m.name for m in target.memories if Content.ARENA in m.holds]
            if len(banks) > 1 and not SOLVER.missing:
                lines.append(f"Nor was a way found to spread the arena over {' and '.join(banks)}.")
            elif len(banks) > 1 and ram_bytes(plan) <= target.ram_bytes:
                remedies.append(f"the arena over {' and '.join(banks)} by CP-SAT: {SOLVER.remedy}")
            remedies += _ram_remedies(plan, ram)
        if flash is not None:
            remedies += _flash_remedies(plan, flash)
        raise DoesNotFitError(
            "\n".join(lines), operator=operator, remedies=remedies, overflows=error.overflows
        ) from error


def _does_not_fit(graph: Graph, board: Board, error: DoesNotFitError) -> str:
    return f"{graph.name} does not fit {board.name}: {error.message}."


def _ram_remedies(plan: Plan, lack: Overflow) -> Iterator[str]:
    """Remedies for this overflow of RAM."""
    if least_ram_bytes(plan.graph) <= lack.room_bytes:
        split = any(op.part_of for op in plan.graph.ops)
        how = "splitting further" if split else "splitting operators"
        yield f"{how} (--ram {lack.room_bytes // 1024}K)"
    if not plan.schedule.proved_optimal:
        yield "another --scheduler"
    yield "a smaller input or narrower layers around that step (`thimble advise`)"
    yield larger_board(lack)


def _flash_remedies(plan: Plan, lack: Overflow) -> Iterator[str]:
    """Remedies for this overflow of flash; splitting operators takes more of it, not less."""
    if plan.spent.operators:
        yield f"--optimise size (gives back {plan.spent.weight_bytes:,} bytes of flash)"
    yield "int4 weights or fewer channels (`thimble advise`)"
    yield larger_board(lack)


def larger_board(lack: Overflow) -> str:
    """The remedy for an overflow that always helps."""
    kind = "flash" if lack.is_flash else "RAM"
    return f"a board with {-(-lack.need_bytes // 1024):,} KiB of {kind} (`thimble boards`)"


def least_ram_bytes(graph: Graph) -> int:
    """A lower bound on the RAM of a firmware, however operators are ordered, placed or split.

    Before the first operator all inputs and states are in the arena, and after the last one every
    output; data and the stack are beside it. Views may join outputs, so the largest counts.
    """
    tensors = graph.tensors
    begin = sum(tensors[name].size_bytes for name in graph.sources)
    end = max((tensors[name].size_bytes for name in graph.outputs), default=0)
    return max(begin, end) + STACK_BYTES + _FIRMWARE_DATA_BYTES


def check_possible(graph: Graph, ram_bytes: int) -> None:
    """Raise DoesNotFitError if no plan of `graph` takes as little as `ram_bytes` of RAM."""
    least = least_ram_bytes(graph)
    if ram_bytes >= least:
        return
    arena = least - STACK_BYTES - _FIRMWARE_DATA_BYTES
    raise DoesNotFitError(
        f"{graph.name} cannot fit {ram_bytes:,} bytes of RAM, however it is split: its inputs or "
        f"outputs alone take {arena:,} bytes of the arena, the stack {STACK_BYTES:,} and the "
        f"firmware's data {_FIRMWARE_DATA_BYTES:,}, {least:,} together",
        remedies=[f"--ram of more than {least:,} bytes", "a smaller input"],
        overflows=[Overflow("RAM", least, ram_bytes, is_flash=False)],
    )


def least_weight_bytes(graph: Graph) -> int:
    """A lower bound on the constants of a firmware, on every core and however operators are split.

    It counts the largest constant that each operator multiplies by. Two values of it may share a
    byte where all fit four bits. Arrays that are equal count once, those of blocks, too: along
    whichever axis an operator is split, its blocks together hold every part of one index that
    differs.
    """
    least: dict[Hashable, int] = {}
    for op in graph.ops:
        held = [graph.tensors[name] for name in op.present_inputs()]
        arrays = [each.constant for each in held if each.constant is not None and each.shape]
        if arrays and spec_of(op.kind).macs(op, graph):
            weights = max(arrays, key=lambda array: array.nbytes)
            least[identity_of(weights.ravel())] = _distinct_bytes(weights)
    return sum(least.values())


def least_flash_bytes(graph: Graph, core: Core) -> int:
    """A lower bound on the flash of a firmware on any board of a core, as `estimated_need` has it,
    without the code of kernels.
    """
    return sizes_of(core).least_around + least_weight_bytes(graph)


def _distinct_bytes(array: NDArray[np.generic]) -> int:
    """The fewest bytes of the parts of one index, along any axis: equal ones count once."""
    parts = (
        len({part.tobytes() for part in np.moveaxis(array, axis, 0)}) * (array.nbytes // size)
        for axis, size in enumerate(array.shape)
    )
    fits_nibbles = array.dtype.kind == "i" and array.min() >= -8 and array.max() <= 7
    return int(min(parts)) // (2 if fits_nibbles else 1)


def check_flash_possible(graph: Graph, board: Board, weight_bytes: int) -> None:
    """Raise DoesNotFitError if the board's flash holds no firmware of `graph`, however it is
    planned: its code and weights take more than that. `weight_bytes`: `least_weight_bytes`.
    """
    if board.is_host:
        return
    try:
        layout(
            board,
            code_bytes=sizes_of(board.core).around(board.name),
            weight_bytes=weight_bytes,
            data_bytes=least_data_bytes(),
            at_least=True,
        )
    except DoesNotFitError as error:
        raise DoesNotFitError(
            _does_not_fit(graph, board, error), overflows=error.overflows
        ) from error

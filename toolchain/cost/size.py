"""Bytes of a firmware, estimated before it is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.boards import Board, Layout, layout
from toolchain.ir.plan import Plan

STACK_BYTES = 2048
"""Reserved for the stack; the firmware paints it and reports how much was used."""

_FIRMWARE_DATA_BYTES = 448
_FIRMWARE_CODE_BYTES = 5000
_BYTES_PER_FUNCTION = 1200
_BYTES_PER_OPERATOR = 180
_ARENA_ALIGNMENT_BYTES = 16


def weight_bytes(plan: Plan) -> int:
    """Constant tensors of the graph, each counted once."""
    return sum(t.size_bytes for t in plan.graph.tensors.values() if t.is_constant)


def code_estimate_bytes(*plans: Plan) -> int:
    """Code of the firmware: its own, one kernel per function used, one call per operator."""
    functions = {function for p in plans for op in p.operators for function in op.functions}
    return (
        _FIRMWARE_CODE_BYTES
        + _BYTES_PER_FUNCTION * len(functions)
        + _BYTES_PER_OPERATOR * sum(plan.calls for plan in plans)
    )


def firmware_data_bytes(plan: Plan) -> int:
    """.data, .bss and stack of the firmware, the arena apart."""
    return STACK_BYTES + _FIRMWARE_DATA_BYTES + 4 * plan.calls


def firmware_layout(board: Board, plans: Sequence[Plan], stack_bytes: int = STACK_BYTES) -> Layout:
    """The banks that hold each part of a firmware whose models share one arena.

    Raises DoesNotFitError saying by how many bytes; the code's size is an estimate.
    """
    return layout(
        board,
        code_bytes=code_estimate_bytes(*plans),
        weight_bytes=sum(weight_bytes(plan) for plan in plans),
        data_bytes=max(map(firmware_data_bytes, plans)) - STACK_BYTES + stack_bytes,
        arena_bytes=shared_arena(plans).size_bytes,
    )


@dataclass(frozen=True)
class SharedArena:
    """Where in one arena those of several models begin."""

    offsets: tuple[int, ...]
    size_bytes: int


def shared_arena(plans: Sequence[Plan]) -> SharedArena:
    """One arena for models that run one at a time.

    They all begin at its start, but for those that keep state between runs: behind the others,
    each has its own.
    """
    size = max((p.arena.size_bytes for p in plans if not p.graph.states), default=0)
    offsets = []
    for plan in plans:
        offset = 0
        if plan.graph.states:
            offset = -(-size // _ARENA_ALIGNMENT_BYTES) * _ARENA_ALIGNMENT_BYTES
            size = offset + plan.arena.size_bytes
        offsets.append(offset)
    return SharedArena(tuple(offsets), size)

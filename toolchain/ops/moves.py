"""Operators that only move bytes; nothing remains to do where the arena plan lays them in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.ir import ArenaPlan, Graph, Op
from toolchain.ops import spec_of
from toolchain.ops.movement.block_concat import single_run
from toolchain.ops.operator import operator_of
from toolchain.ops.spec import Alias


@dataclass(frozen=True)
class Move:
    """Copy `size_bytes` from one tensor to another, at a byte offset into each."""

    source: str
    source_offset: int
    target: str
    target_offset: int
    size_bytes: int


def _in_place(op: Op, graph: Graph, arena: ArenaPlan) -> bool:
    """Whether all images that the operator would copy lie where they belong, as strided views."""
    strided = spec_of(op.kind).strided_views(op, graph)
    return bool(strided) and all(
        arena.pitches.get(one.view) == one.pitch_bytes
        and arena.offsets[one.view] == arena.offsets[one.base] + one.offset_bytes
        for one in strided
    )


def _stays(op: Op, graph: Graph, arena: ArenaPlan) -> bool:
    """Whether a block_concat would copy one run of bytes to where it lies."""
    run = single_run(operator_of(op, graph))
    if run is None or graph.tensors[op.inputs[0]].is_constant:
        return False
    source = arena.offsets[op.inputs[0]] + run.source_offset
    return bool(source == arena.offsets[op.outputs[0]])


def may_move(op: Op, graph: Graph) -> bool:
    """Whether `moves` is not None in some arena."""
    spec = spec_of(op.kind)
    if op.kind == "block_concat":
        return True
    return spec.rearranges and bool(spec.aliases(op, graph) or spec.strided_views(op, graph))


def covers(op: Op, graph: Graph, aliases: Sequence[Alias]) -> bool:
    """Whether the aliases give the source of every byte of every output."""
    views = {alias.view for alias in aliases}
    for name in op.outputs:
        parts = sum(graph.tensors[a.view].size_bytes for a in aliases if a.base == name)
        if name not in views and parts != graph.tensors[name].size_bytes:
            return False
    return True


def moves(op: Op, graph: Graph, arena: ArenaPlan) -> tuple[Move, ...] | None:
    """The copies that `op` still needs, given where its tensors lie; () for a pure view.

    None where the operator is more than a rearrangement of whole byte ranges: its kernel is called.
    """
    if op.kind == "block_concat":
        return () if _stays(op, graph, arena) else None
    if not spec_of(op.kind).rearranges:
        return None
    if _in_place(op, graph, arena):
        return ()
    aliases = spec_of(op.kind).aliases(op, graph)
    if not aliases or not covers(op, graph, aliases):
        return None
    result = []
    for alias in aliases:
        view, base = graph.tensors[alias.view], graph.tensors[alias.base]
        if not view.is_constant and not base.is_constant:
            offset = arena.offsets[base.name] + alias.offset_bytes
            if arena.offsets[view.name] == offset:
                continue
        if view.name in op.outputs:
            result.append(Move(base.name, alias.offset_bytes, view.name, 0, view.size_bytes))
        else:
            result.append(Move(view.name, 0, base.name, alias.offset_bytes, view.size_bytes))
    return tuple(m for m in result if m.size_bytes)

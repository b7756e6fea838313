"""Places in the arena for the constants of each operator that are fetched before it runs.

The constants of an operator are fetched while the one before it runs, and are needed until it has
run. They lie where the tensors leave bytes free at these steps; the arena grows where these are too
few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from toolchain.codegen import HEADER_BYTES, fetched_bytes
from toolchain.ir import BLOB_ALIGNMENT_BYTES
from toolchain.memory.plan import Plan


@dataclass(frozen=True)
class _Span:
    """Bytes [begin, end) of the arena that are taken at the steps [first, last)."""

    begin: int
    end: int
    first: int
    last: int


def with_fetches(plan: Plan) -> Plan:
    """The plan with a place for the constants of each operator, largest first, each the lowest.

    The arena is in one piece, and has room for the header of the blob.
    """
    if plan.arena.parts:
        raise ValueError("constants are fetched to an arena in one piece")
    sizes = fetched_bytes(plan)
    taken = list(_taken(plan))
    places: dict[str, int] = {}
    top = max(plan.arena.size_bytes, HEADER_BYTES)
    steps = _steps(plan)
    for name in sorted(sizes, key=lambda name: (-sizes[name], name)):
        first, last = steps[name]
        at = _lowest(taken, first, last, sizes[name])
        places[name] = at
        taken.append(_Span(at, at + sizes[name], first, last))
        top = max(top, at + sizes[name])
    arena = replace(
        plan.arena,
        size_bytes=top,
        alignment_bytes=max(plan.arena.alignment_bytes, BLOB_ALIGNMENT_BYTES),
        fetch_offsets=MappingProxyType(places),
        fetch_bytes=MappingProxyType(dict(sizes)),
        fetch_steps=MappingProxyType({name: steps[name] for name in sizes}),
    )
    return replace(plan, arena=arena)


def _steps(plan: Plan) -> Mapping[str, tuple[int, int]]:
    """Steps at which constants lie in the arena, by the operator's name: from the step of the
    operator with code before it to its own."""
    steps: dict[str, tuple[int, int]] = {}
    before = 0
    for step, number in enumerate(plan.schedule.order):
        if not plan.operators[number].is_view:
            steps[plan.graph.ops[number].name] = (before, step + 1)
            before = step
    return steps


def _taken(plan: Plan) -> Iterator[_Span]:
    """The spans of tensors and scratch."""
    arena = plan.arena
    for name, offset in arena.offsets.items():
        first, last = arena.lifetimes[name]
        yield _Span(offset, offset + plan.graph.tensors[name].size_bytes, first, last)
    for step, number in enumerate(plan.schedule.order):
        name, size = plan.graph.ops[number].name, plan.operators[number].scratch_bytes
        if name in arena.scratch_offsets:
            at = arena.scratch_offsets[name]
            yield _Span(at, at + size, step, step + 1)


def _lowest(taken: list[_Span], first: int, last: int, size_bytes: int) -> int:
    """The lowest offset at which so many bytes are free at all of these steps."""
    at = 0
    for span in sorted(
        (s for s in taken if s.first < last and first < s.last), key=lambda s: s.begin
    ):
        if span.begin >= at + size_bytes:
            break
        if span.end > at:
            at = -(-span.end // BLOB_ALIGNMENT_BYTES) * BLOB_ALIGNMENT_BYTES
    return at

"""Graph to memory problem: which tensors share a buffer, and what each operator needs besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Buffer, Graph, Member, MemoryProblem, Overlap
from toolchain.ops import spec_of
from toolchain.ops.spec import Alias, SafeOverlap

TENSOR_ALIGNMENT_BYTES = 4

View = tuple[str, str]
"""An operator and a tensor that is a view through it, by name."""


@dataclass(frozen=True)
class _Place:
    """A tensor's root tensor and its offset inside that."""

    root: str
    offset_bytes: int


def _places(graph: Graph, copying: frozenset[View]) -> dict[str, _Place]:
    """Follow every alias to its root. One that cannot hold is left out: its operator copies.

    A tensor is laid in another at most once. Where it is already a view of all of some other
    tensor (a reshape of it), that one is laid there in its stead. A graph input never moves into
    another tensor, since nothing but the caller may write over its neighbours before its last use.
    """
    parent: dict[str, tuple[str, int]] = {}

    def find(name: str) -> _Place:
        offset = 0
        while name in parent:
            name, step = parent[name]
            offset += step
        return _Place(name, offset)

    for op in graph.ops:
        for alias in spec_of(op.kind).aliases(op, graph):
            view, base = graph.tensors[alias.view], graph.tensors[alias.base]
            if view.is_constant or base.is_constant or (op.name, view.name) in copying:
                continue
            root = find(view.name).root
            if graph.tensors[root].size_bytes != view.size_bytes or root in graph.inputs:
                continue
            if find(base.name).root != root:
                parent[root] = (base.name, alias.offset_bytes)
    return {t.name: find(t.name) for t in graph.activations()}


def optional_views(graph: Graph) -> tuple[View, ...]:
    """Views of a part, which keep the rest of a buffer alive: to copy may be cheaper."""

    def of_a_part(alias: Alias) -> bool:
        return graph.tensors[alias.view].size_bytes < graph.tensors[alias.base].size_bytes

    return tuple(
        (op.name, alias.view)
        for op in graph.ops
        for alias in spec_of(op.kind).aliases(op, graph)
        if of_a_part(alias)
    )


def memory_problem(
    graph: Graph, core: Core, copying: frozenset[View] = frozenset()
) -> MemoryProblem:
    """What schedulers and allocators need of `graph` on `core`.

    Buffers come in the order in which their root tensors stand in the graph. `copying`:
    views that shall be copies instead. Raises UnsupportedError, which names every
    operator that has no kernel for its shape on this core.
    """
    return memory_problems(graph, core)(copying)


def memory_problems(graph: Graph, core: Core) -> Callable[[frozenset[View]], MemoryProblem]:
    """`memory_problem` for one graph and many choices of `copying`, without lowering it again."""
    scratch = _scratch_bytes(graph, core)
    safe = tuple(spec_of(op.kind).overlaps(op, graph, core) for op in graph.ops)
    return lambda copying: _problem(graph, _places(graph, copying), scratch, safe)


def _scratch_bytes(graph: Graph, core: Core) -> tuple[int, ...]:
    """What each operator's kernel needs besides its tensors; see `memory_problem`."""
    scratch, refused = [], []
    for op in graph.ops:
        try:
            scratch.append(spec_of(op.kind).lower(op, graph, core).scratch_bytes)
        except UnsupportedError as error:
            refused.append(str(error))
        except (ArithmeticError, ValueError) as error:  # absurd scales, from a hostile file
            refused.append(f"{op.kind} {op.name!r}: {error}")
    if refused:
        raise UnsupportedError("\n".join(refused))
    return tuple(scratch)


def _problem(
    graph: Graph,
    places: Mapping[str, _Place],
    scratch_bytes: tuple[int, ...],
    safe_overlaps: Sequence[Sequence[SafeOverlap]],
) -> MemoryProblem:
    members: dict[str, list[Member]] = {}
    for name, place in places.items():
        members.setdefault(place.root, []).append(Member(name, place.offset_bytes))
    index = {root: i for i, root in enumerate(members)}
    buffers = tuple(
        Buffer(
            name=root,
            size_bytes=max(m.offset_bytes + graph.tensors[m.tensor].size_bytes for m in held),
            members=tuple(held),
            alignment_bytes=max(
                TENSOR_ALIGNMENT_BYTES, *(graph.tensors[m.tensor].dtype.size_bytes for m in held)
            ),
            from_start=any(m.tensor in graph.inputs for m in held),
            to_end=any(m.tensor in graph.outputs for m in held),
        )
        for root, held in members.items()
    )
    uses, overlaps = [], []
    for number, op in enumerate(graph.ops):
        named = [n for n in (*op.present_inputs(), *op.outputs) if n in places]
        uses.append(tuple(sorted({index[places[n].root] for n in named})))
        for safe in safe_overlaps[number]:
            source, target = op.inputs[safe.input], op.outputs[safe.output]
            if source not in places or places[source].root == places[target].root:
                continue
            shares = {n for n in op.present_inputs() if n in places} - {source}
            if any(places[n].root == places[source].root for n in shares):
                continue
            lead = safe.lead_bytes + places[target].offset_bytes - places[source].offset_bytes
            pair = index[places[source].root], index[places[target].root]
            alignment = min(buffers[side].alignment_bytes for side in pair)
            if safe.exact and lead % alignment:
                continue
            lead = -(-lead // alignment) * alignment  # offsets differ by a multiple of it
            overlaps.append(Overlap(number, *pair, lead, safe.exact))
    return MemoryProblem(
        ops=tuple(op.name for op in graph.ops),
        predecessors=graph.predecessors,
        uses=tuple(uses),
        scratch_bytes=scratch_bytes,
        buffers=buffers,
        overlaps=tuple(overlaps),
    )

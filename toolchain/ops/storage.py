"""Graph to memory problem: which tensors share a buffer, and what each operator needs besides."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.boards import Core
from toolchain.ir import Buffer, Graph, Member, MemoryProblem, Overlap
from toolchain.ops import spec_of

TENSOR_ALIGNMENT_BYTES = 4


@dataclass(frozen=True)
class _Place:
    """A tensor's root tensor and its offset inside that."""

    root: str
    offset_bytes: int


def _places(graph: Graph, copying: frozenset[str]) -> dict[str, _Place]:
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
        if op.name in copying:
            continue
        for alias in spec_of(op.kind).aliases(op, graph):
            view, base = graph.tensors[alias.view], graph.tensors[alias.base]
            if view.is_constant or base.is_constant:
                continue
            root = find(view.name).root
            if graph.tensors[root].size_bytes != view.size_bytes or root in graph.inputs:
                continue
            if find(base.name).root != root:
                parent[root] = (base.name, alias.offset_bytes)
    return {t.name: find(t.name) for t in graph.activations()}


def memory_problem(
    graph: Graph, core: Core, copying: frozenset[str] = frozenset()
) -> MemoryProblem:
    """What schedulers and allocators need of `graph` on `core`.

    Buffers come in the order in which their root tensors stand in the graph. `copying` names
    operators that shall copy though they could be views: a view keeps all of its buffer alive,
    which costs more than it saves where one part is long done with. Raises UnsupportedError where
    an operator has no kernel for its shape on this core.
    """
    places = _places(graph, copying)
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
    uses, scratch, overlaps = [], [], []
    for number, op in enumerate(graph.ops):
        named = [n for n in (*op.present_inputs(), *op.outputs) if n in places]
        uses.append(tuple(sorted({index[places[n].root] for n in named})))
        spec = spec_of(op.kind)
        scratch.append(spec.lower(op, graph, core).scratch_bytes)
        for safe in spec.overlaps(op, graph, core):
            source, target = op.inputs[safe.input], op.outputs[safe.output]
            if source not in places or places[source].root == places[target].root:
                continue
            shares = {n for n in op.present_inputs() if n in places} - {source}
            if any(places[n].root == places[source].root for n in shares):
                continue
            lead = safe.lead_bytes + places[target].offset_bytes - places[source].offset_bytes
            overlaps.append(
                Overlap(number, index[places[source].root], index[places[target].root], lead)
            )
    return MemoryProblem(
        ops=tuple(op.name for op in graph.ops),
        predecessors=graph.predecessors,
        uses=tuple(uses),
        scratch_bytes=tuple(scratch),
        buffers=buffers,
        overlaps=tuple(overlaps),
    )

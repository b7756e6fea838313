"""From graph to memory problem: which tensors share a buffer, and what each operator needs
besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from toolchain.errors import UnsupportedError
from toolchain.ir import Buffer, Graph, Member, MemoryProblem, Op, Overlap
from toolchain.memory.reads import touched_bytes
from toolchain.memory.views import (
    Place,
    View,
    optional_views,
    places_of,
    possible_strided_views,
)
from toolchain.ops.kernel import SafeOverlap
from toolchain.ops.lowering import Lowered
from toolchain.ops.movement.input_rows import rows_of

TENSOR_ALIGNMENT_BYTES = 4


def _predecessors(
    graph: Graph, uses: Sequence[Sequence[int]], buffer_of: Mapping[str, int]
) -> tuple[tuple[int, ...], ...]:
    """Predecessors of each operator: those of the graph; for an operator that updates a state, all
    others that use the state's buffer; for rows of an input that arrives by rows, the rows before.

    Raises UnsupportedError where states wait for one another.
    """
    if not graph.states and graph.pushed is None:
        return graph.predecessors
    before = [set(others) for others in graph.predecessors]
    if graph.pushed is not None:
        pushes = graph.consumers[graph.pushed.input]
        ordered = sorted(pushes, key=lambda index: rows_of(graph.ops[index]).begin)
        for one, other in pairwise(ordered):
            before[other].add(one)
    for state in graph.states:
        writer, buffer = graph.producers[state.output], buffer_of[state.input]
        before[writer].update(op for op, used in enumerate(uses) if buffer in used and op != writer)
    try:
        tuple(TopologicalSorter(dict(enumerate(before))).static_order())
    except CycleError as error:
        names = sorted({graph.ops[op].name for op in error.args[1]})
        raise UnsupportedError(
            f"states exchange their values without a copy between: {', '.join(names)}; "
            "assign at most one of them directly from the other"
        ) from error
    return tuple(tuple(sorted(others)) for others in before)


def memory_problem(
    lowered: Lowered,
    copying: frozenset[View] = frozenset(),
    *,
    progressive: bool = False,
) -> MemoryProblem:
    """The memory problem of a graph and its kernels, for schedulers and allocators.

    Buffers are in the order of their root tensors in the graph. `copying`: views that shall be
    copies instead. `progressive`: count only the live part of a buffer at each step; placements can
    use that, but the bounds of searching schedulers do not. Raises UnsupportedError if states wait
    for one another in a cycle.
    """
    problem = memory_problems(lowered)(copying)
    if not progressive:
        return problem
    return replace(problem, accesses=touched_bytes(lowered.graph, problem))


def memory_problems(lowered: Lowered) -> Callable[[frozenset[View]], MemoryProblem]:
    """`memory_problem` for one graph and many choices of `copying`."""
    graph = lowered.graph
    scratch = tuple(kernel.scratch_bytes for kernel in lowered.kernels)
    safe = tuple(kernel.overlaps for kernel in lowered.kernels)
    strided = possible_strided_views(lowered)
    at_words = frozenset(name for kernel in lowered.kernels for name in kernel.at_words)

    def problem(copying: frozenset[View]) -> MemoryProblem:
        return _problem(graph, places_of(graph, strided, copying, at_words), scratch, safe)

    return problem


def cheapest_views(lowered: Lowered, peak_bytes: Callable[[MemoryProblem], int]) -> MemoryProblem:
    """Lay all views in place, except those that cost more memory than they save: they copy.

    A view of a part keeps the whole buffer alive. Example: a small skip connection that is laid in
    a big concat occupies its place from the start. Each view is tried in turn, and `peak_bytes`
    decides.
    """
    problem_of = memory_problems(lowered)
    copying: frozenset[View] = frozenset()
    problem = problem_of(copying)
    for view in optional_views(lowered.graph):
        other = problem_of(copying | {view})
        if peak_bytes(other) < peak_bytes(problem):
            problem, copying = other, copying | {view}
    return problem


def _joint_overlaps(
    op: Op, places: Mapping[str, Place], safe_overlaps: Sequence[SafeOverlap]
) -> dict[tuple[str, str], SafeOverlap]:
    """Overlaps of inputs, by name, with buffers, by their root; leads are those between the
    buffers.

    Outputs that lie in one buffer must all bear the input, at one distance; so must all uses of an
    input that is read twice. An input whose buffer holds another input bears nothing, nor do
    images whose lines lie apart.
    """
    held = [places[name].root for name in dict.fromkeys(op.present_inputs()) if name in places]
    born = [places[name].root for name in op.outputs if name in places]
    bearing: dict[tuple[str, str], list[SafeOverlap]] = {}
    for safe in safe_overlaps:
        if op.outputs[safe.output] not in places:
            continue
        source, target = op.inputs[safe.input], places[op.outputs[safe.output]]
        apart = source in places and (places[source].pitch_bytes or target.pitch_bytes)
        if source in places and not apart and held.count(places[source].root) == 1:
            lead = safe.lead_bytes + target.offset_bytes - places[source].offset_bytes
            bearing.setdefault((source, target.root), []).append(replace(safe, lead_bytes=lead))
    joint = {}
    for (source, root), each in bearing.items():
        widest = max(each, key=lambda safe: (safe.lead_bytes, safe.exact))
        exact = [safe for safe in each if safe.exact]
        if (
            root != places[source].root
            and len(each) == born.count(root) * op.inputs.count(source)
            and all(safe.lead_bytes == widest.lead_bytes for safe in exact)
        ):
            joint[source, root] = replace(widest, exact=bool(exact))
    return joint


def _problem(
    graph: Graph,
    places: Mapping[str, Place],
    scratch_bytes: tuple[int, ...],
    safe_overlaps: Sequence[Sequence[SafeOverlap]],
) -> MemoryProblem:
    members: dict[str, list[Member]] = {}
    for name, place in places.items():
        members.setdefault(place.root, []).append(
            Member(name, place.offset_bytes, place.pitch_bytes)
        )
    index = {root: i for i, root in enumerate(members)}
    buffers = tuple(
        Buffer(
            name=root,
            size_bytes=max(m.offset_bytes + graph.tensors[m.tensor].size_bytes for m in held),
            members=tuple(held),
            alignment_bytes=max(
                TENSOR_ALIGNMENT_BYTES, *(graph.tensors[m.tensor].dtype.size_bytes for m in held)
            ),
            from_start=any(m.tensor in graph.sources for m in held),
            to_end=any(m.tensor in graph.kept for m in held),
            serial=graph.tensors[root].serial,
        )
        for root, held in members.items()
    )
    uses, overlaps = [], []
    for number, op in enumerate(graph.ops):
        named = [n for n in (*op.present_inputs(), *op.outputs) if n in places]
        uses.append(tuple(sorted({index[places[n].root] for n in named})))
        for (source, root), safe in _joint_overlaps(op, places, safe_overlaps[number]).items():
            pair = index[places[source].root], index[root]
            alignment = min(buffers[side].alignment_bytes for side in pair)
            if safe.exact and safe.lead_bytes % alignment:
                continue
            lead = -(-safe.lead_bytes // alignment) * alignment  # offsets differ by multiples of it
            overlaps.append(Overlap(number, *pair, lead, safe.exact))
    return MemoryProblem(
        ops=tuple(op.name for op in graph.ops),
        predecessors=_predecessors(graph, uses, {n: index[p.root] for n, p in places.items()}),
        uses=tuple(uses),
        scratch_bytes=scratch_bytes,
        buffers=buffers,
        overlaps=tuple(overlaps),
        serials=tuple(graph.output(op).serial for op in graph.ops),
    )

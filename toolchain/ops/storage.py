"""Graph to memory problem: which tensors share a buffer, and what each operator needs besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Access, Buffer, Graph, Member, MemoryProblem, Op, Overlap, State
from toolchain.ops import kernel_of, spec_of
from toolchain.ops.spec import Alias, Inlay, SafeOverlap

TENSOR_ALIGNMENT_BYTES = 4

View = tuple[str, str]
"""An operator and a tensor that is a view through it, by name."""


@dataclass(frozen=True)
class _Place:
    """A tensor's root tensor and its offset inside that; `pitch_bytes` as in `Member`."""

    root: str
    offset_bytes: int
    pitch_bytes: int = 0


class _Layout:
    """Tensors laid in one another, as aliases are taken one by one.

    A state's next value lies where the state lies. A buffer holds one state at most, and none
    together with a graph output: the state's new value is written when all else is read.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._parent = {state.output: (state.input, 0) for state in graph.states}
        self._state = {state.output: state for state in graph.states}
        self._owners: dict[str, set[str]] = {name: {"outputs"} for name in graph.outputs}
        self._owners |= {state.input: {state.input} for state in graph.states}
        self._bases = {state.input for state in graph.states}
        self._pitch: dict[str, int] = {}

    def find(self, name: str) -> _Place:
        offset, pitch = 0, self._pitch.get(name, 0)
        while name in self._parent:
            name, step = self._parent[name]
            offset += step
        return _Place(name, offset, pitch)

    def inlay(self, inlays: Sequence[Inlay]) -> None:
        """Lay images into a larger one as lines with gaps; all or none. After all `lay`s.

        None of the views may be laid elsewhere, nor anything in them, nor the base so itself.
        """
        views = {inlay.view for inlay in inlays}
        if any(view in self._parent or view in self._bases for view in views):
            return
        if inlays[0].base in self._pitch:
            return
        for inlay in inlays:
            self._parent[inlay.view] = (inlay.base, inlay.offset_bytes)
            self._bases.add(inlay.base)
            self._pitch[inlay.view] = inlay.pitch_bytes

    def lay(self, alias: Alias) -> None:
        """Lay the view in its base, unless that cannot hold.

        A tensor is laid in another at most once. Where it is already a view of all of some other
        tensor (a reshape of it), that one is laid there in its stead. A graph input never moves
        into another tensor, since nothing but the caller may write over its neighbours before its
        last use.
        """
        graph = self._graph
        root, into = self.find(alias.view).root, self.find(alias.base).root
        same_size = graph.tensors[root].size_bytes == graph.tensors[alias.view].size_bytes
        if not same_size or root in graph.inputs or root == into:
            return
        owners = self._owners.get(root, set()) | self._owners.get(into, set())
        if len(owners) > 1:
            return
        if alias.base in self._state and not self._may_fill(self._state[alias.base], root):
            return
        self._parent[root] = (alias.base, alias.offset_bytes)
        self._bases.add(alias.base)
        if owners:
            self._owners[into] = owners

    def _may_fill(self, state: State, root: str) -> bool:
        """Whether what lies in `root` may be computed right where the state lies.

        It may where the state lies alone, and every operator that reads it runs before any that
        writes to `root`, whatever the order of the rest.
        """
        graph = self._graph
        held = [t.name for t in graph.activations()]
        alone = {n for n in held if self.find(n).root == state.input}
        if alone != {state.input, state.output}:
            return False
        writer = graph.producers[state.output]
        readers = set(graph.consumers[state.input]) - {writer}
        written = [name for name in held if self.find(name).root == root]
        before = _ancestors(graph)
        return all(
            name in graph.producers and readers <= before[graph.producers[name]] for name in written
        )


def _ancestors(graph: Graph) -> list[set[int]]:
    """For each operator those that its inputs depend on."""
    found: list[set[int]] = []
    for before in graph.predecessors:
        found.append(set(before).union(*(found[p] for p in before)))
    return found


def _inlays(graph: Graph, core: Core) -> tuple[tuple[Inlay, ...], ...]:
    """Those of each operator, where all who touch the images bear their gaps."""
    fixed = {*graph.sources, *graph.kept}

    def bears(other: int, view: str) -> bool:
        op = graph.ops[other]
        return view in kernel_of(op, graph, core).strided

    def possible(op: int, inlay: Inlay) -> bool:
        view, base = graph.tensors[inlay.view], graph.tensors[inlay.base]
        touching = {*graph.consumers[view.name], graph.producers.get(view.name, op)} - {op}
        return (
            not (view.is_constant or base.is_constant or view.name in fixed)
            and bool(touching)
            and all(bears(other, view.name) for other in touching)
        )

    each = ((i, spec_of(op.kind).inlays(op, graph)) for i, op in enumerate(graph.ops))
    return tuple(
        inlays for i, inlays in each if inlays and all(possible(i, inlay) for inlay in inlays)
    )


def _places(
    graph: Graph, inlays: Sequence[Sequence[Inlay]], copying: frozenset[View]
) -> dict[str, _Place]:
    """Follow every alias to its root. One that cannot hold is left out: its operator copies."""
    layout = _Layout(graph)
    for op in graph.ops:
        for alias in spec_of(op.kind).aliases(op, graph):
            view, base = graph.tensors[alias.view], graph.tensors[alias.base]
            if (
                not view.is_constant
                and not base.is_constant
                and (op.name, view.name) not in copying
            ):
                layout.lay(alias)
    for of_one in inlays:
        layout.inlay(of_one)
    return {t.name: layout.find(t.name) for t in graph.activations()}


def _predecessors(
    graph: Graph, uses: Sequence[Sequence[int]], buffer_of: Mapping[str, int]
) -> tuple[tuple[int, ...], ...]:
    """Those of the graph; and who updates a state runs after all who use the state's buffer.

    Raises UnsupportedError where states wait for one another.
    """
    if not graph.states:
        return graph.predecessors
    before = [set(found) for found in graph.predecessors]
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
    return tuple(tuple(sorted(found)) for found in before)


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
    graph: Graph,
    core: Core,
    copying: frozenset[View] = frozenset(),
    *,
    progressive: bool = False,
) -> MemoryProblem:
    """What schedulers and allocators need of `graph` on `core`.

    Buffers come in the order in which their root tensors stand in the graph. `copying`:
    views that shall be copies instead. `progressive`: count only the part of a buffer that is
    live at a step, which placements can use but the bounds of the schedulers that search do not
    know. Raises UnsupportedError, which names every operator that has no kernel for its shape on
    this core.
    """
    problem = memory_problems(graph, core)(copying)
    return replace(problem, accesses=_accesses(graph, problem)) if progressive else problem


def memory_problems(graph: Graph, core: Core) -> Callable[[frozenset[View]], MemoryProblem]:
    """`memory_problem` for one graph and many choices of `copying`, without lowering it again."""
    scratch = _scratch_bytes(graph, core)
    safe = tuple(kernel_of(op, graph, core).overlaps for op in graph.ops)
    inlays = _inlays(graph, core)
    return lambda copying: _problem(graph, _places(graph, inlays, copying), scratch, safe)


def covers(op: Op, graph: Graph, aliases: Sequence[Alias]) -> bool:
    """Whether the aliases say where every byte of every output comes from."""
    views = {alias.view for alias in aliases}
    for name in op.outputs:
        parts = sum(graph.tensors[a.view].size_bytes for a in aliases if a.base == name)
        if name not in views and parts != graph.tensors[name].size_bytes:
            return False
    return True


def _accesses(graph: Graph, problem: MemoryProblem) -> tuple[tuple[Access, ...], ...]:
    """Of each operator the bytes that it reads and all that it writes, and those between lines that
    lie apart; none where views leave it nothing to do."""
    at = {
        member.tensor: (index, member.offset_bytes)
        for index, buffer in enumerate(problem.buffers)
        for member in buffer.members
    }
    pitches = {m.tensor: m.pitch_bytes for b in problem.buffers for m in b.members}

    def in_place(alias: Alias | Inlay) -> bool:
        base, pitch = at.get(alias.base), alias.pitch_bytes if isinstance(alias, Inlay) else 0
        lies = base is not None and at.get(alias.view) == (base[0], base[1] + alias.offset_bytes)
        return lies and pitches[alias.view] == pitch

    def extent(name: str) -> int:
        tensor, pitch = graph.tensors[name], pitches[name]
        lines = tensor.shape[1] if pitch else 1
        return (lines - 1) * pitch + tensor.size_bytes // lines

    found: list[tuple[Access, ...]] = []
    for op in graph.ops:
        aliases = spec_of(op.kind).aliases(op, graph)
        if aliases and covers(op, graph, aliases) and all(map(in_place, aliases)):
            found.append(())
            continue
        inlays = spec_of(op.kind).inlays(op, graph)
        if inlays and all(map(in_place, inlays)):
            found.append(())
            continue
        runs = [(name, 0, extent(name)) for name in op.outputs if name in at]
        for name, (begin, end) in zip(op.inputs, spec_of(op.kind).reads(op, graph), strict=True):
            if name in at:
                apart = bool(pitches[name])
                runs.append((name, 0, extent(name)) if apart else (name, begin, end))
        touched = ((*at[name], begin, end) for name, begin, end in runs)
        accesses = (Access(buffer, at + begin, at + end) for buffer, at, begin, end in touched)
        found.append(tuple(dict.fromkeys(accesses)))
    return tuple(found)


def _scratch_bytes(graph: Graph, core: Core) -> tuple[int, ...]:
    """What each operator's kernel needs besides its tensors; see `memory_problem`."""
    scratch, refused = [], []
    for op in graph.ops:
        try:
            scratch.append(kernel_of(op, graph, core).scratch_bytes)
        except UnsupportedError as error:
            refused.append(str(error))
        except (ArithmeticError, ValueError) as error:  # absurd scales, from a hostile file
            refused.append(f"{op.kind} {op.name!r}: {error}")
    if refused:
        raise UnsupportedError("\n".join(refused))
    return tuple(scratch)


def _joint_overlaps(
    op: Op, places: Mapping[str, _Place], safe_overlaps: Sequence[SafeOverlap]
) -> dict[tuple[str, str], SafeOverlap]:
    """Which input, by name, may lie under which buffer, by its root; leads between the buffers.

    Outputs that lie in one buffer must all bear the input, at one distance; so must all uses of an
    input that is read twice. An input whose buffer holds another input bears nothing, nor do
    images whose lines lie apart.
    """
    held = [places[name].root for name in dict.fromkeys(op.present_inputs()) if name in places]
    born = [places[name].root for name in op.outputs]
    found: dict[tuple[str, str], list[SafeOverlap]] = {}
    for safe in safe_overlaps:
        source, target = op.inputs[safe.input], places[op.outputs[safe.output]]
        apart = source in places and (places[source].pitch_bytes or target.pitch_bytes)
        if source in places and not apart and held.count(places[source].root) == 1:
            lead = safe.lead_bytes + target.offset_bytes - places[source].offset_bytes
            found.setdefault((source, target.root), []).append(replace(safe, lead_bytes=lead))
    joint = {}
    for (source, root), each in found.items():
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
    places: Mapping[str, _Place],
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
    )

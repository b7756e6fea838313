"""Which tensors can be laid in one another, as views, and where each lies in its buffer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from toolchain.ir import Graph, State
from toolchain.ops import spec_of
from toolchain.ops.lowering import Lowered
from toolchain.ops.spec import Alias, StridedView

WORD_BYTES = 4
View = tuple[str, str]
"""An operator and a tensor that is a view through it, by name."""


@dataclass(frozen=True)
class Place:
    """A tensor's root tensor and its offset inside that in bytes; `pitch_bytes` as in `Member`."""

    root: str
    offset_bytes: int
    pitch_bytes: int = 0


class _Layout:
    """Tensors laid in one another, as aliases are taken one by one.

    A state's next value lies where the state lies. A buffer holds one state at most, and none
    together with a graph output: the state's new value is written when all else is read.
    """

    def __init__(self, graph: Graph, at_words: frozenset[str]) -> None:
        self._graph = graph
        self._at_words = at_words
        self._parent = {state.output: (state.input, 0) for state in graph.states}
        self._state = {state.output: state for state in graph.states}
        self._owners: dict[str, set[str]] = {name: {"outputs"} for name in graph.outputs}
        self._owners |= {state.input: {state.input} for state in graph.states}
        self._bases = {state.input for state in graph.states}
        self._pitch: dict[str, int] = {}

    def find(self, name: str) -> Place:
        offset, pitch = 0, self._pitch.get(name, 0)
        while name in self._parent:
            name, step = self._parent[name]
            offset += step
        return Place(name, offset, pitch)

    def lay_strided(self, images: Sequence[StridedView]) -> None:
        """Lay images into a larger one, with gaps between lines; all or none. Call it after every
        `lay`.

        None of the views may be laid elsewhere, nor anything in them, nor the base so itself.
        """
        views = {image.view for image in images}
        if any(view in self._parent or view in self._bases for view in views):
            return
        if images[0].base in self._pitch:
            return
        if not all(
            self._keeps_words(i.view, i.base, i.offset_bytes, i.pitch_bytes) for i in images
        ):
            return
        for image in images:
            self._parent[image.view] = (image.base, image.offset_bytes)
            self._bases.add(image.base)
            self._pitch[image.view] = image.pitch_bytes

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
        if len(owners) > 1 or not self._keeps_words(root, alias.base, alias.offset_bytes):
            return
        if alias.base in self._state and not self._may_fill(self._state[alias.base], root):
            return
        self._parent[root] = (alias.base, alias.offset_bytes)
        self._bases.add(alias.base)
        if owners:
            self._owners[into] = owners

    def _keeps_words(self, root: str, base: str, offset_bytes: int, pitch_bytes: int = 0) -> bool:
        """Whether each tensor in `root` that must lie at a word still would, with `root` laid in
        `base` at this offset and with lines so far apart.
        """
        begin = self.find(base).offset_bytes + offset_bytes
        within = [self.find(name) for name in self._at_words]
        return all(
            (begin + place.offset_bytes) % WORD_BYTES == pitch_bytes % WORD_BYTES == 0
            for place in within
            if place.root == root
        )

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
    """For each operator the operators that its inputs depend on."""
    ancestors: list[set[int]] = []
    for before in graph.predecessors:
        ancestors.append(set(before).union(*(ancestors[p] for p in before)))
    return ancestors


def possible_strided_views(lowered: Lowered) -> tuple[tuple[StridedView, ...], ...]:
    """The strided views of each operator, where every kernel that touches them supports gaps."""
    graph = lowered.graph
    fixed = {*graph.sources, *graph.kept}

    def possible(op: int, image: StridedView) -> bool:
        view, base = graph.tensors[image.view], graph.tensors[image.base]
        touching = {*graph.consumers[view.name], graph.producers.get(view.name, op)} - {op}
        return (
            not (view.is_constant or base.is_constant or view.name in fixed)
            and bool(touching)
            and all(view.name in lowered.kernels[other].strided for other in touching)
        )

    each = ((i, spec_of(op.kind).strided_views(op, graph)) for i, op in enumerate(graph.ops))
    return tuple(
        images for i, images in each if images and all(possible(i, image) for image in images)
    )


def places_of(
    graph: Graph,
    strided: Sequence[Sequence[StridedView]],
    copying: frozenset[View],
    at_words: frozenset[str],
) -> dict[str, Place]:
    """Follow every alias to its root. An alias that cannot hold is left out: its operator copies.
    An alias that would lay a tensor of `at_words` elsewhere than at a word is left out, too.
    """
    layout = _Layout(graph, at_words)
    for op in graph.ops:
        for alias in spec_of(op.kind).aliases(op, graph):
            view, base = graph.tensors[alias.view], graph.tensors[alias.base]
            if (
                not view.is_constant
                and not base.is_constant
                and (op.name, view.name) not in copying
            ):
                layout.lay(alias)
    for images in strided:
        layout.lay_strided(images)
    return {t.name: layout.find(t.name) for t in graph.activations()}


def optional_views(graph: Graph) -> tuple[View, ...]:
    """Views of a part, which keep the rest of a buffer alive, so that a copy may be cheaper."""

    def of_a_part(alias: Alias) -> bool:
        return graph.tensors[alias.view].size_bytes < graph.tensors[alias.base].size_bytes

    return tuple(
        (op.name, alias.view)
        for op in graph.ops
        for alias in spec_of(op.kind).aliases(op, graph)
        if of_a_part(alias)
    )

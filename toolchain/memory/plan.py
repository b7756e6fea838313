"""The plan: a graph, its kernels, their order, where every tensor lies, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.files.notebook import Card, Span, Told
from toolchain.ir.about import NOTHING_KNOWN, About
from toolchain.ir.arena import ArenaPlan
from toolchain.ir.boundary import Boundary, End
from toolchain.ir.graph import Graph
from toolchain.ir.removed import NOTHING_REMOVED, RemovedChannels
from toolchain.ir.schedule import Schedule
from toolchain.ops import spec_of
from toolchain.ops.lowering import Lowered
from toolchain.ops.moves import moves

NEARLY_FREE = 0.01
"""Splits that cost no more than this fraction of the latency are part of every plan."""


@dataclass(frozen=True)
class PlannedOp:
    """One operator of a plan. `functions` are the C functions that its code calls.

    `is_view`: its outputs are laid in place, so it has no code. `inexact` and `instead` are those
    of the kernel that it calls (`ops.kernel.Kernel`).
    """

    name: str
    kind: str
    macs: int
    scratch_bytes: int
    functions: tuple[str, ...]
    is_view: bool = False
    inexact: str = ""
    instead: str = ""


@dataclass(frozen=True)
class FlashSpent:
    """Flash spent on quicker kernels, whose constants take more of it.

    `operators` of the model have such kernels, for so many more bytes of constants. `before`: what
    an inference would take without them, by prediction, in `unit`; `saved`: how much less it takes.
    """

    operators: int = 0
    weight_bytes: int = 0
    saved: int = 0
    before: int = 0
    unit: str = ""


NOTHING_SPENT = FlashSpent()


@dataclass(frozen=True)
class Copied:
    """Copies that the start-up makes, from flash to RAM that is read sooner.

    `banks`: the bytes that constants take in each bank, those of so many `operators` of the model.
    `code_in`: the bank that has the kernels' code, about `code_bytes`. `before`: what an inference
    would take without copies, by prediction, in `unit`; `saved`: how much less it takes.
    """

    banks: tuple[tuple[str, int], ...] = ()
    operators: int = 0
    code_in: str = ""
    code_bytes: int = 0
    saved: int = 0
    before: int = 0
    unit: str = ""

    @property
    def size_bytes(self) -> int:
        return sum(size for _, size in self.banks) + self.code_bytes


NOTHING_COPIED = Copied()


@dataclass(frozen=True, repr=False)
class Plan(Told):
    """Everything that codegen needs and the report shows.

    operators     parallel to `graph.ops`.
    step_bytes    the stable footprint at each step, parallel to `schedule.order`.
    board         its name.
    weight_bytes  bytes of constants that the generated C holds.
    slowdown      predicted time beyond that of the quickest plan that the board holds, as a
                  fraction of it.
    unsplit_bytes  the arena of the plan without splits; 0 where nothing is split.
    search_stopped  why the search for ways to split ended early; empty where it did not.
    removed       channels of the model that no output depends on.
    spent         flash that quicker kernels take.
    copied        RAM that copies of constants and code take.
    about         what is known of the model file beside its graph.
    """

    lowered: Lowered
    board: str
    schedule: Schedule
    arena: ArenaPlan
    operators: tuple[PlannedOp, ...]
    step_bytes: tuple[int, ...]
    weight_bytes: int = 0
    boundaries: tuple[Boundary, ...] = ()
    slowdown: float = 0.0
    unsplit_bytes: int = 0
    search_stopped: str = ""
    removed: RemovedChannels = NOTHING_REMOVED
    spent: FlashSpent = NOTHING_SPENT
    copied: Copied = NOTHING_COPIED
    about: About = NOTHING_KNOWN

    def card(self) -> Card:
        """Board, arena, constants, operators, and the picture of the arena."""
        arena, order = self.arena, self.schedule.order
        bound = self.schedule.lower_bound_bytes
        proof = (
            "proved minimal"
            if arena.size_bytes == bound
            else f"no order needs less than {bound:,} B"
        )
        facts = [("arena", f"{arena.size_bytes:,} B ({proof})")]
        if self.unsplit_bytes:
            facts.append(("whole", f"{self.unsplit_bytes:,} B where no operator is split"))
        facts += [
            ("constants", f"{self.weight_bytes:,} B"),
            ("operators", f"{len(order)}, {self.macs:,} MACs"),
        ]
        if self.slowdown:
            facts.append(("slowdown", f"{self.slowdown:.2%} against the quickest plan"))
        sizes = {name: self.graph.tensors[name].size_bytes for name in arena.offsets}
        spans = tuple(
            Span(name, *arena.lifetimes[name], arena.offsets[name], sizes[name])
            for name in arena.offsets
        )
        title = f"{self.graph.name} on {self.board}"
        return Card("Plan", title, tuple(facts), spans=spans, height_bytes=max(arena.size_bytes, 1))

    @property
    def graph(self) -> Graph:
        return self.lowered.graph

    @property
    def macs(self) -> int:
        return sum(op.macs for op in self.operators)

    @property
    def calls(self) -> int:
        """The number of operators that have code."""
        return sum(not op.is_view for op in self.operators)

    @property
    def counted(self) -> int:
        """The number of operators that the generated code counts: blocks of one operator count as
        one.
        """
        ops = zip(self.graph.ops, self.operators, strict=True)
        return len({op.counted_as for op, planned in ops if not planned.is_view})

    @property
    def peak_step(self) -> int:
        """The first step of the order that holds the peak; 0 for a graph without operators."""
        return self.step_bytes.index(max(self.step_bytes)) if self.step_bytes else 0

    def boundary(self, tensor: str) -> Boundary | None:
        """How the model's own form of a graph input or output differs; None where it does not."""
        return next((b for b in self.boundaries if b.tensor == tensor), None)

    @property
    def inputs(self) -> tuple[End, ...]:
        """The model's inputs, in the graph's order."""
        return tuple(self._end(name) for name in self.graph.inputs)

    @property
    def outputs(self) -> tuple[End, ...]:
        """The model's outputs, in the graph's order."""
        return tuple(self._end(name) for name in self.graph.outputs)

    def _end(self, name: str) -> End:
        return End(self.graph.tensors[name], self.boundary(name))


def planned_ops(lowered: Lowered, placed: ArenaPlan) -> tuple[PlannedOp, ...]:
    """The operators of a graph whose tensors are placed."""
    graph = lowered.graph
    planned = []
    for op, kernel in zip(graph.ops, lowered.kernels, strict=True):
        wanted = moves(op, graph, placed)
        called = wanted is None
        planned.append(
            PlannedOp(
                name=op.name,
                kind=op.kind,
                macs=spec_of(op.kind).macs(op, graph),
                scratch_bytes=kernel.scratch_bytes,
                functions=kernel.functions,
                is_view=wanted == (),
                inexact=kernel.inexact if called else "",
                instead=kernel.instead if called else "",
            )
        )
    return tuple(planned)

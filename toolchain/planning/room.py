"""Arenas with room left: kernels that are quicker with more scratch get it where it is free, and
flash for their constants, too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.cost.predicted import constant_bytes as packed_bytes
from toolchain.ir import Op
from toolchain.ir.arena import SCRATCH_ALIGNMENT_BYTES
from toolchain.ir.identity import OperatorIdentity, operator_identity
from toolchain.memory.plan import Plan, planned_ops
from toolchain.ops.kernel import Kernel, SafeOverlap
from toolchain.ops.lowering import Lowered, lower
from toolchain.planning.forms import Way, by_scratch, known_forms, with_kernel, within

Span = tuple[int, int]
_APART = 16


@dataclass(frozen=True)
class _Form:
    """A form of an operator's kernel, as far as it is the same for all blocks of one shape."""

    title: str
    function: str
    scratch_bytes: int
    overlaps: tuple[SafeOverlap, ...]
    cycles: int
    constant_bytes: int


@dataclass(frozen=True)
class _Spot:
    """A form, and where its scratch lies."""

    form: _Form
    at: int


@dataclass(frozen=True)
class _Block:
    """An operator of the graph with forms, at a step: those that fit there, quickest first.

    `now`: the one that the plan has. `lean`: the function that takes the least flash.
    """

    step: int
    index: int
    spots: tuple[_Spot, ...]
    now: _Spot
    lean: str

    def best(self, functions: frozenset[str]) -> _Spot:
        """The quickest that calls one of the functions or the lean one; else the plan's."""
        usable = functions | {self.lean}
        return next((spot for spot in self.spots if spot.form.function in usable), self.now)


def spend_room(plan: Plan, costs: CostModel, spare: int, most_bytes: int = 0) -> Plan:
    """The plan with quicker kernels whose scratch fits beside the bytes that are live while they
    run: kernels with more scratch, and kernels whose constants take more flash, of which `spare`
    bytes are left.

    The order and the place of every tensor stay, and so does the arena, but for `most_bytes` to
    which the latter may make it grow. An arena that is spread over banks is left as it is.
    """
    if plan.arena.parts:
        return plan
    lean = lower(plan.graph, plan.lowered.core, plan.lowered.preference)
    kernels, scratch = list(plan.lowered.kernels), dict(plan.arena.scratch_offsets)
    groups: dict[str, list[_Block]] = {}
    known: dict[OperatorIdentity, tuple[_Form, ...]] = {}
    for step, index in enumerate(plan.schedule.order):
        op, kernel = plan.graph.ops[index], kernels[index]
        live = sorted(_live(plan, step))
        if known_forms(lean.kernels[index], lean):
            forms = _forms(lean, index, costs, known)
            (now,) = (
                _Spot(form, scratch.get(op.name, 0)) for form in forms if form.title == kernel.title
            )
            spots = [*_spots(plan, op, live, forms, most_bytes), now]
            spots.sort(key=lambda spot: spot.form.cycles)
            block = _Block(step, index, tuple(spots), now, lean.kernels[index].name)
            groups.setdefault(op.part_of or op.name, []).append(block)
            continue
        roomier = _with_more_scratch(plan, op, kernel, live)
        if roomier is not None:
            kernels[index], scratch[op.name] = roomier
    chosen = tuple(_chosen(plan, list(groups.values()), spare))
    for block, spot in chosen:
        each = lean.kernels[block.index].forms()
        kernels[block.index] = next(one for one in each if one.title == spot.form.title)
        scratch[plan.graph.ops[block.index].name] = spot.at
    grown = {
        index: kernels[index].scratch_bytes - plan.lowered.kernels[index].scratch_bytes
        for index in plan.schedule.order
    }
    taken = (
        (plan.graph.ops[block.index], spot.form.title)
        for block, spot in chosen
        if spot.form.function != block.lean
    )
    named = MappingProxyType({op.part_of or op.name: title for op, title in taken})
    lowered = replace(plan.lowered, kernels=tuple(kernels), forms=named)
    ends = (
        scratch[op.name] + kernel.scratch_bytes
        for op, kernel in zip(plan.graph.ops, kernels, strict=True)
        if kernel.scratch_bytes
    )
    size_bytes = max((plan.arena.size_bytes, *ends))
    places = MappingProxyType(scratch)
    arena = replace(plan.arena, scratch_offsets=places, size_bytes=size_bytes)
    steps = zip(plan.step_bytes, plan.schedule.order, strict=True)
    made = replace(
        plan,
        lowered=lowered,
        arena=arena,
        operators=planned_ops(lowered, arena),
        step_bytes=tuple(size + grown[index] for size, index in steps),
    )
    return replace(made, weight_bytes=constant_bytes(made))


def with_room(plan: Plan) -> Plan:
    """As `spend_room`, without kernels whose constants take more flash: the bytes of constants stay
    as they are, and nothing is packed.
    """
    kernels, scratch = list(plan.lowered.kernels), dict(plan.arena.scratch_offsets)
    for step, index in enumerate(plan.schedule.order):
        op = plan.graph.ops[index]
        roomier = _with_more_scratch(plan, op, kernels[index], sorted(_live(plan, step)))
        if roomier is not None:
            kernels[index], scratch[op.name] = roomier
    lowered = replace(plan.lowered, kernels=tuple(kernels))
    arena = replace(plan.arena, scratch_offsets=MappingProxyType(scratch))
    return replace(plan, lowered=lowered, arena=arena, operators=planned_ops(lowered, arena))


def _with_more_scratch(
    plan: Plan, op: Op, kernel: Kernel, live: list[Span]
) -> tuple[Kernel, int] | None:
    """The form with most scratch that fits beside what is live, and where; None where none does."""
    for form in kernel.more_scratch():
        at = _gap(live, form.scratch_bytes, plan.arena.size_bytes)
        if at is not None and _safe(plan, op, form.overlaps):
            return form, at
    return None


def _chosen(
    plan: Plan, groups: Sequence[Sequence[_Block]], spare: int
) -> Iterator[tuple[_Block, _Spot]]:
    """The form of every block: of all blocks of one operator those of one function, or the lean one
    where that is quicker.
    """
    items = []
    for blocks in groups:
        none = _taken(plan, blocks, frozenset())
        names = sorted({spot.form.function for block in blocks for spot in block.spots})
        ways = [
            _way(_taken(plan, blocks, frozenset({name})), none)
            for name in names
            if name != blocks[0].lean
        ]
        now = _Taken.of(plan, [(block, block.now) for block in blocks])
        spare += now.size_bytes - none.size_bytes
        items.append(ways)
    choices = within(items, spare).choices
    for blocks, ways, choice in zip(groups, items, choices, strict=True):
        functions = frozenset() if choice is None else ways[choice].functions
        for block in blocks:
            yield block, block.best(functions)


@dataclass(frozen=True)
class _Taken:
    """Costs of all blocks of an operator together: cycles, flash, and the functions called. Blocks
    share the constants that one function packs from the same tensors into as many bytes.
    """

    cycles: int
    size_bytes: int
    functions: frozenset[str]

    @staticmethod
    def of(plan: Plan, spots: Sequence[tuple[_Block, _Spot]]) -> _Taken:
        sizes = {
            (plan.graph.ops[block.index].inputs[1:], spot.form.function, spot.form.constant_bytes)
            for block, spot in spots
        }
        return _Taken(
            sum(spot.form.cycles for _, spot in spots),
            sum(size for *_, size in sizes),
            frozenset(spot.form.function for _, spot in spots),
        )


def _taken(plan: Plan, blocks: Sequence[_Block], functions: frozenset[str]) -> _Taken:
    return _Taken.of(plan, [(block, block.best(functions)) for block in blocks])


def _way(taken: _Taken, none: _Taken) -> Way:
    more = taken.functions - none.functions
    return Way(more, taken.size_bytes - none.size_bytes, none.cycles - taken.cycles)


def _forms(
    lean: Lowered, index: int, costs: CostModel, known: dict[OperatorIdentity, tuple[_Form, ...]]
) -> tuple[_Form, ...]:
    """The forms of an operator, those with more scratch first; computed once for all operators that
    are the same (`ir.identity`), as most blocks of one are. Core, preference and cost model are
    those of a plan.
    """
    key = operator_identity(lean.graph.ops[index], lean.graph)
    if key not in known:
        first = lean.kernels[index]
        forms = []
        for kernel in (
            one for form in (first, *known_forms(first, lean)) for one in by_scratch(form)
        ):
            other = with_kernel(lean, index, kernel)
            cycles, size = costs.cost(other, index).count, packed_bytes(other, index)
            title, scratch = kernel.title, kernel.scratch_bytes
            forms.append(_Form(title, kernel.name, scratch, kernel.overlaps, cycles, size))
        known[key] = tuple(forms)
    return known[key]


def _spots(
    plan: Plan, op: Op, live: list[Span], forms: Sequence[_Form], most_bytes: int
) -> Iterator[_Spot]:
    for form in forms:
        arena_bytes = plan.arena.size_bytes
        if form.function != forms[0].function:
            arena_bytes = max(arena_bytes, most_bytes)
        at = _gap(live, form.scratch_bytes, arena_bytes)
        if at is not None and _safe(plan, op, form.overlaps):
            yield _Spot(form, at)


def lone_form(plan: Plan, title: str) -> Plan:
    """The plan of one operator with the kernel of that title, of all forms that it has. Its tensors
    and its scratch lie behind each other.
    """
    (op,) = plan.graph.ops
    lowered = lower(plan.graph, plan.lowered.core, plan.lowered.preference)
    (kernel,) = lowered.kernels
    titled = next(form for form in kernel.forms() if form.title == title)
    lowered = replace(lowered, kernels=(titled,))
    offsets, end = {}, 0
    for name in plan.arena.offsets:
        offsets[name] = end
        end += -(-plan.graph.tensors[name].size_bytes // _APART) * _APART
    scratch_bytes = lowered.kernels[0].scratch_bytes
    arena = replace(
        plan.arena,
        offsets=MappingProxyType(offsets),
        scratch_offsets=MappingProxyType({op.name: end} if scratch_bytes else {}),
        size_bytes=end + scratch_bytes,
        lower_bound_bytes=end + scratch_bytes,
    )
    made = replace(plan, lowered=lowered, arena=arena, operators=planned_ops(lowered, arena))
    return replace(made, weight_bytes=constant_bytes(made))


def _safe(plan: Plan, op: Op, overlaps: Sequence[SafeOverlap]) -> bool:
    """Whether the outputs lie over inputs only as the kernel allows."""
    for i, source in enumerate(op.inputs):
        for j, target in enumerate(op.outputs):
            if source not in plan.arena.offsets or not _meet(plan, source, target):
                continue
            distance = plan.arena.offsets[source] - plan.arena.offsets[target]
            if not any(
                distance == o.lead_bytes if o.exact else distance >= o.lead_bytes
                for o in overlaps
                if (o.input, o.output) == (i, j)
            ):
                return False
    return True


def _meet(plan: Plan, one: str, other: str) -> bool:
    (start, end), (begin, stop) = _span(plan, one), _span(plan, other)
    return max(start, begin) < min(end, stop)


def _span(plan: Plan, name: str) -> Span:
    """The bytes from a tensor's first to its last."""
    tensor, pitch = plan.graph.tensors[name], plan.arena.pitches.get(name)
    size = tensor.size_bytes
    if pitch is not None:
        size += (tensor.shape[1] - 1) * (pitch - size // tensor.shape[1])
    return plan.arena.offsets[name], plan.arena.offsets[name] + size


def _live(plan: Plan, step: int) -> Iterator[Span]:
    """The bytes of all tensors that are live at a step."""
    for name, (start, end) in plan.arena.lifetimes.items():
        if start <= step < end:
            yield _span(plan, name)


def _gap(live: list[Span], size_bytes: int, arena_bytes: int) -> int | None:
    """The lowest place for scratch among spans that are sorted."""
    at = 0
    for start, end in live:
        if start - at >= size_bytes:
            return at
        at = max(at, -(-end // SCRATCH_ALIGNMENT_BYTES) * SCRATCH_ALIGNMENT_BYTES)
    return at if arena_bytes - at >= size_bytes else None

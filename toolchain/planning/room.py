"""Arenas with room left: kernels that are quicker with more scratch get it where it is free, and
flash for their constants, too."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from types import MappingProxyType

from toolchain.boards import Memory
from toolchain.codegen import constant_bytes
from toolchain.cost import CostModel
from toolchain.cost.alternatives import kernels_of
from toolchain.ir import Graph, Op, Tensor
from toolchain.ir.arena import SCRATCH_ALIGNMENT_BYTES
from toolchain.kernels.code_sizes import code_bytes
from toolchain.memory.plan import Plan, planned_ops
from toolchain.ops.kernel import Kernel, SafeOverlap
from toolchain.ops.lowering import Kernels, Lowered, lower
from toolchain.ops.moves import may_move, moves
from toolchain.planning.forms import Way, within
from toolchain.search.knapsack import pack

Span = tuple[int, int]
Choices = Sequence[int | None]
_APART = 16


@dataclass(frozen=True)
class Form:
    """A kernel that may compute an operator, as far as it is the same for all blocks of one shape.

    `number`: its place in what `kernels_of` yields. `function`: the kernel's name; `functions`: of
    C, which it calls. `cycles`: of an inference with all in flash; `kept`: with its code copied to
    the quickest RAM; `copied`: with its constants, too. `array_bytes`: of its largest constant.
    """

    number: int
    title: str
    function: str
    functions: tuple[str, ...]
    scratch_bytes: int
    overlaps: tuple[SafeOverlap, ...]
    cycles: int
    kept: int
    copied: int
    constant_bytes: int
    array_bytes: int

    def least(self, most_copied: float) -> int:
        """Cycles with any copies, where no operator's constants that take more bytes are copied."""
        return self.copied if self.array_bytes <= most_copied else self.kept


@dataclass(frozen=True)
class Beside:
    """Room for scratch beside what is live while each operator runs, of a way without places.

    `bytes_beside`: for each operator, no more are free in the arena, wherever tensors lie.
    `titles`: of the kernels that the way has.
    """

    bytes_beside: Sequence[float]
    titles: Sequence[str]

    def fitting(self, forms: tuple[Form, ...], index: int) -> tuple[Form, ...]:
        """The forms that may have their scratch, the leanest and the way's own included."""
        most, title = self.bytes_beside[index], self.titles[index]
        others = (one for one in forms[1:] if one.scratch_bytes <= most or one.title == title)
        return forms[0], *others


class Forms:
    """The forms of operators, kept for all that are the same (`ir.identity`), as most blocks of one
    are: for one core, one preference and one cost model. `costs`: of the network that they are in.
    `banks`: that may hold copies of constants and code.
    """

    def __init__(self, costs: CostModel, known: Kernels, banks: Sequence[Memory] = ()) -> None:
        self.costs = costs
        self.kernels = known
        self._data_places = ("", *(bank.name for bank in banks))
        self._code_places = ("", *(bank.name for bank in banks if bank.code_origin is not None))
        self._known: dict[int, tuple[Form, ...]] = {}
        self._packed: dict[tuple[str, tuple[Tensor, ...]], tuple[int, int]] = {}

    def lean(self, graph: Graph) -> Lowered:
        """A graph with kernels that take no more flash and scratch than they must."""
        known = self.kernels
        return lower(graph, known.core, known.preference, known=known)

    def of(self, lean: Lowered, index: int) -> tuple[Form, ...]:
        """That which takes the least flash and scratch first. `lean`: as lowered without forms."""
        key = self.kernels.number(index, lean.graph)
        if key not in self._known:
            self._known[key] = tuple(self._forms(lean, index))
        return self._known[key]

    def _forms(self, lean: Lowered, index: int) -> Iterator[Form]:
        kernels = tuple(kernels_of(lean.kernels[index], lean.core))
        several = len(kernels) > 1
        for number, kernel in enumerate(kernels):
            counts = {
                data: [
                    self.costs.cost(lean.with_kernel(index, kernel.moved(data, code)), index).count
                    for code in self._code_places
                ]
                for data in self._data_places
            }
            constant_bytes, array_bytes = self._constant_bytes(kernel, lean, index)
            yield Form(
                number,
                kernel.title,
                kernel.name,
                kernel.functions,
                kernel.scratch_bytes,
                kernel.overlaps,
                counts[""][0],
                min(counts[""]),
                min(chain.from_iterable(counts.values())),
                constant_bytes if several else 0,
                array_bytes,
            )

    def least(
        self,
        graph: Graph,
        most_bytes: int | None = None,
        beside: Beside | None = None,
        most_copied: float = math.inf,
    ) -> int:
        """No plan of these operators takes less time, whatever its copies.

        `most_bytes`: bytes of constants beyond those of lean kernels, for which the flash has room,
        at most; None: any number. The code of lean functions may give way to as many, in any case.
        `beside`: what the arena has room for; None: anything. `most_copied`: bytes of an operator's
        constants that RAM has room for, at most.
        """
        lean = self.lean(graph)
        blocks: dict[tuple[str, tuple[str, ...]], list[tuple[Form, ...]]] = {}
        for index, op in enumerate(lean.graph.ops):
            if not may_move(op, lean.graph):
                known = blocks.setdefault((op.part_of or op.name, op.inputs[1:]), [])
                forms = self.of(lean, index)
                known.append(forms if beside is None else beside.fitting(forms, index))
        least = sum(_least(forms, most_copied) for each in blocks.values() for forms in each)
        if most_bytes is None:
            return least
        called = frozenset(name for kernel in lean.kernels for name in kernel.functions)
        room, none, items = max(most_bytes, code_bytes(lean.core, called)), 0, []
        for each in blocks.values():
            count, given_back, ways = _bounds(each, most_copied)
            room, none = room + given_back, none + count
            items.append(ways)
        if sum(max((size for size, _ in ways), default=0) for ways in items) <= room:
            return least
        packed = pack(items, room)
        if not packed.optimal:
            return least
        chosen = zip(items, packed.choices, strict=True)
        return none - sum(ways[at][1] for ways, at in chosen if at is not None)

    def _constant_bytes(self, kernel: Kernel, lean: Lowered, index: int) -> tuple[int, int]:
        """Bytes of a kernel's constants, and of the largest constant that it reads, packed or not.
        Blocks that read the same tensors pack as many.
        """
        if kernel.packed_bytes:
            return kernel.packed_bytes, kernel.packed_bytes
        read = (lean.graph.tensors[name] for name in lean.graph.ops[index].present_inputs())
        key = kernel.name, tuple(tensor for tensor in read if tensor.is_constant)
        if key not in self._packed:
            largest = kernel.largest_constant(lean.graph.ops[index], lean.graph)
            self._packed[key] = kernel.constant_bytes, largest
        return self._packed[key]


def _least(forms: Iterable[Form], most_copied: float) -> int:
    return min(form.least(most_copied) for form in forms)


def _bounds(
    blocks: Sequence[Sequence[Form]], most_copied: float
) -> tuple[int, int, list[tuple[int, int]]]:
    """Blocks that read the same constants: the least time of their lean functions; the bytes that
    another may give back; and for each of the others the least bytes more, and the most time saved.
    """
    lean = [[form for form in forms if form.function == forms[0].function] for forms in blocks]
    held = {(form.function, form.constant_bytes) for forms in lean for form in forms}
    held_bytes = sum(size for _, size in held)
    none = sum(_least(forms, most_copied) for forms in lean)
    given_back, ways = 0, []
    for function in {form.function for forms in blocks for form in forms}:
        usable = [
            [form for form in forms if form.function in (function, forms[0].function)]
            for forms in blocks
        ]
        saved = none - sum(_least(forms, most_copied) for forms in usable)
        sizes = [f.constant_bytes for forms in blocks for f in forms if f.function == function]
        more = min(sizes) - held_bytes
        given_back = max(given_back, -more)
        if saved > 0:
            ways.append((max(more, 0), saved))
    return none, given_back, ways


@dataclass(frozen=True, slots=True)
class _Spot:
    """A form, where its scratch lies, and the bytes of the smallest arena in which it may."""

    form: Form
    at: int
    arena_bytes: int


@dataclass(frozen=True, slots=True)
class _Block:
    """An operator of the graph with forms: those that fit beside what is live, quickest first.

    `lean`: the function that takes the least flash. `now`: the spot that the plan has, or, where
    that takes more flash, the lean one in its place.
    """

    index: int
    spots: tuple[_Spot, ...]
    now: _Spot
    lean: str

    def best(self, functions: frozenset[str], arena_bytes: int) -> _Spot:
        """The quickest that calls one of the functions or the lean one."""
        usable = functions | {self.lean}
        fitting = (
            spot
            for spot in self.spots
            if spot.form.function in usable and spot.arena_bytes <= arena_bytes
        )
        return next(fitting, self.now)


class Room:
    """A plan, and its time by the bytes that its arena and the flash may take.

    Kernels that are quicker with more scratch, or whose constants take more flash, are taken where
    their scratch fits beside what is live while they run. The order and the place of every tensor
    stay. An arena that is spread over banks is left as it is.
    """

    def __init__(self, plan: Plan, forms: Forms, operators: frozenset[int] | None = None) -> None:
        """`operators`: those that may have other kernels, without which nothing is said of time."""
        self.whole = plan
        self._forms = forms
        self._lean = forms.lean(plan.graph)
        self._groups: dict[str, list[_Block]] = {}
        self._fixed = 0
        self._lone: list[tuple[int, tuple[Form, ...]]] = []
        self._fixed_functions: set[str] = set()
        self._kept: dict[tuple[int, int | None, bool], tuple[_Spot, ...]] = {}
        self._called: dict[str, tuple[str, ...]] = {}
        for index, live in zip(plan.schedule.order, _live(plan), strict=True):
            if operators is None or index in operators:
                self._add(index, live)

    def _add(self, index: int, live: Sequence[Span]) -> None:
        plan = self.whole
        op, kernel = plan.graph.ops[index], plan.lowered.kernels[index]
        wanted = moves(op, plan.graph, plan.arena)
        if wanted is not None:
            sizes = [move.size_bytes for move in wanted]
            self._fixed += self._forms.costs.copies(sizes).count if sizes else 0
            return
        forms = self._forms.of(self._lean, index)
        if len(forms) == 1 or plan.arena.parts:
            count = forms[0].cycles
            if kernel.title != forms[0].title:
                count = self._forms.costs.cost(plan.lowered, index).count
            self._fixed += count
            self._lone.append((count, forms))
            self._fixed_functions.update(kernel.functions)
            return
        at = plan.arena.scratch_offsets.get(op.name, 0)
        lean = forms[0].function
        now = next((form for form in forms if form.title == kernel.title), forms[0])
        there = _Spot(now, at, at + now.scratch_bytes if now.scratch_bytes else 0)
        spots = _useful([*_spots(plan, op, live, forms), there])
        if now.function != lean:
            at_least = _gap(live, forms[0].scratch_bytes)
            there = _Spot(forms[0], at_least, at_least + forms[0].scratch_bytes)
        block = _Block(index, spots, there, lean)
        self._called |= {form.function: form.functions for form in forms}
        self._groups.setdefault(op.part_of or op.name, []).append(block)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of the arena at which a kernel begins to fit, from those that the plan takes."""
        least = self.whole.arena.size_bytes
        ends = {
            spot.arena_bytes
            for blocks in self._groups.values()
            for block in blocks
            for spot in block.spots
        }
        return (least, *sorted(end for end in ends if end > least))

    @property
    def lean(self) -> Plan:
        """The plan with the kernels of which each alone takes the least flash."""
        return self._with(self._chosen(self.whole.arena.size_bytes, None, lean=True))

    @cached_property
    def smallest(self) -> Plan:
        """The plan with the least flash that is known, of any arena."""
        return self.plan(self._smallest[0], -sys.maxsize)

    @property
    def least_flash_bytes(self) -> int:
        """Its flash beside that of `lean`; less than 0 where fewer functions are called."""
        return self._smallest[1]

    def holds(self, arena_bytes: int, spare: int) -> bool:
        """Whether so many bytes of flash beyond that of `lean` suffice in an arena."""
        items, called = self._items(arena_bytes)
        every = (self._figures(items, called, choices)[1] for choices in _fixed_choices(items))
        return min(every) <= spare

    def count(self, arena_bytes: int, spare: int | None) -> int:
        """Cost of one inference with at most so many bytes of arena, and so many of flash beyond
        that of `lean`. A negative number: less than that, where the plan `holds`. None: no kernel
        has more constants than the lean one.
        """
        return self._fixed + sum(spot.form.cycles for spot in self._taking(arena_bytes, spare))

    def least(self, arena_bytes: int, spare: int | None, most_copied: float) -> int:
        """This cost less what copies into RAM may save at most. `most_copied`: as for a form."""
        saved = sum(max(count - _least(forms, most_copied), 0) for count, forms in self._lone)
        taking = self._taking(arena_bytes, spare)
        return self._fixed - saved + sum(spot.form.least(most_copied) for spot in taking)

    def _chosen(
        self, arena_bytes: int, spare: int | None, *, lean: bool = False
    ) -> Iterator[tuple[_Block, _Spot]]:
        """Every block with its form."""
        blocks = chain.from_iterable(self._groups.values())
        return zip(blocks, self._taking(arena_bytes, spare, lean=lean), strict=True)

    def _taking(
        self, arena_bytes: int, spare: int | None, *, lean: bool = False
    ) -> tuple[_Spot, ...]:
        """The form of every block: of all blocks of one operator those of one function, or the lean
        one where that is quicker. `lean`: the lean ones alone.
        """
        key = arena_bytes, spare, lean
        if key not in self._kept:
            self._kept[key] = tuple(self._choose(arena_bytes, spare, lean=lean))
        return self._kept[key]

    def _choose(self, arena_bytes: int, spare: int | None, *, lean: bool) -> Iterator[_Spot]:
        items, called = self._items(arena_bytes)
        choices = (None,) * len(items) if lean else self._best(items, called, spare)
        for blocks, ways, choice in zip(self._groups.values(), items, choices, strict=True):
            functions = frozenset() if choice is None else ways[choice].functions
            for block in blocks:
                yield block.best(functions, arena_bytes)

    def _items(self, arena_bytes: int) -> tuple[list[list[Way]], list[list[frozenset[str]]]]:
        """The ways of each operator, in one order for every arena; and the functions that they
        call, with those of no way last.
        """
        items, called = [], []
        for blocks in self._groups.values():
            none = self._taken(blocks, frozenset(), arena_bytes)
            names = sorted({spot.form.function for block in blocks for spot in block.spots})
            taken = [
                self._taken(blocks, frozenset({name}), arena_bytes)
                for name in names
                if name != blocks[0].lean
            ]
            items.append([_way(one, none) for one in taken])
            called.append([*(one.functions for one in taken), none.functions])
        return items, called

    def _best(
        self,
        items: Sequence[Sequence[Way]],
        called: Sequence[Sequence[frozenset[str]]],
        spare: int | None,
    ) -> Choices:
        """The way of each item, or None: the quickest within so much more flash.

        The knapsack counts the code that ways add, not that of functions which nothing calls any
        more. So the quickest of all ways, and of those without more constants, are tried, too: as
        these do not depend on `spare`, more of it is never slower. Nothing saves more than the
        quickest of all ways: where they fit, nothing is packed.
        """
        none, quickest, plain = _fixed_choices(items)
        others = [none, plain] if spare is None else [none, quickest, plain]
        figures = [self._figures(items, called, choices) for choices in others]
        if spare is None:
            spare = 0
        elif 0 <= spare < figures[1][1]:
            base = frozenset().union(*(each[-1] for each in called))
            code = self._code_bytes([base])
            more = partial(self._more_code_bytes, base, code)
            others.append(within(items, spare, more).choices)
            figures.append(self._figures(items, called, others[-1]))
        fitting = [at for at, (_, more) in enumerate(figures) if more <= spare]
        least = min(range(len(others)), key=lambda at: figures[at][1])
        return others[max(fitting, key=lambda at: figures[at][0], default=least)]

    @cached_property
    def _smallest(self) -> tuple[int, int]:
        """An arena in which the least flash is taken, and the flash beside that of `lean`."""
        least = []
        for size in self.sizes:
            items, called = self._items(size)
            every = _fixed_choices(items)
            more = min(self._figures(items, called, choices)[1] for choices in every)
            least.append((more, size))
        more, size = min(least)
        return size, more

    def _figures(
        self,
        items: Sequence[Sequence[Way]],
        called: Sequence[Sequence[frozenset[str]]],
        choices: Choices,
    ) -> tuple[int, int]:
        """Time that ways save, and bytes of flash that they take, beside no ways."""
        before = self._code_bytes(each[-1] for each in called)
        ways = [each[at] for each, at in zip(items, choices, strict=True) if at is not None]
        after = self._code_bytes(
            each[-1 if at is None else at] for each, at in zip(called, choices, strict=True)
        )
        more_bytes = sum(way.more_bytes for way in ways) + after - before
        return sum(way.saved for way in ways), more_bytes

    def _code_bytes(self, called: Iterable[frozenset[str]]) -> int:
        """Bytes of all code of kernels where those of these names are called."""
        functions = {
            function for name in frozenset[str]().union(*called) for function in self._called[name]
        }
        return code_bytes(self._lean.core, frozenset(self._fixed_functions | functions))

    def _more_code_bytes(self, base: frozenset[str], before: int, names: frozenset[str]) -> int:
        return self._code_bytes([base, names]) - before

    def _taken(
        self, blocks: Sequence[_Block], functions: frozenset[str], arena_bytes: int
    ) -> _Taken:
        spots = [(block, block.best(functions, arena_bytes)) for block in blocks]
        return _Taken.of(self.whole, spots)

    def _kernel(self, block: _Block, form: Form) -> Kernel:
        every = kernels_of(self._lean.kernels[block.index], self._lean.core)
        return next(one for number, one in enumerate(every) if number == form.number)

    def lowered(self, arena_bytes: int) -> Lowered:
        """The kernels that take no more flash than they must, in so many bytes of arena."""
        kernels = list(self.whole.lowered.kernels)
        for block, spot in self._chosen(arena_bytes, None):
            kernels[block.index] = self._kernel(block, spot.form)
        return replace(self.whole.lowered, kernels=tuple(kernels))

    def plan(self, arena_bytes: int, spare: int | None) -> Plan:
        """The plan with these kernels. Its `weight_bytes` are those of the plan that was given."""
        return self._with(self._chosen(arena_bytes, spare))

    def _with(self, chosen: Iterable[tuple[_Block, _Spot]]) -> Plan:
        plan = self.whole
        kernels, scratch = list(plan.lowered.kernels), dict(plan.arena.scratch_offsets)
        named, end = {}, plan.arena.size_bytes
        for block, spot in chosen:
            op, form = plan.graph.ops[block.index], spot.form
            kernels[block.index] = self._kernel(block, form)
            scratch[op.name] = spot.at
            end = max(end, spot.arena_bytes)
            if not form.scratch_bytes:
                scratch.pop(op.name, None)
            if form.function != block.lean:
                named[op.part_of or op.name] = form.title
        grown = {
            index: kernels[index].scratch_bytes - plan.lowered.kernels[index].scratch_bytes
            for index in plan.schedule.order
        }
        forms = MappingProxyType(named)
        lowered = replace(plan.lowered, kernels=tuple(kernels), forms=forms)
        arena = replace(plan.arena, scratch_offsets=MappingProxyType(scratch), size_bytes=end)
        steps = zip(plan.step_bytes, plan.schedule.order, strict=True)
        return replace(
            plan,
            lowered=lowered,
            arena=arena,
            operators=planned_ops(lowered, arena),
            step_bytes=tuple(size + grown[index] for size, index in steps),
        )


def with_room(plan: Plan) -> Plan:
    """The plan with kernels that take more scratch where that fits beside what is live while they
    run, none of those whose constants take more flash: nothing is packed.
    """
    kernels, scratch = list(plan.lowered.kernels), dict(plan.arena.scratch_offsets)
    for index, live in zip(plan.schedule.order, _live(plan), strict=True):
        op = plan.graph.ops[index]
        roomier = _with_more_scratch(plan, op, kernels[index], live)
        if roomier is not None:
            kernels[index], scratch[op.name] = roomier
    lowered = replace(plan.lowered, kernels=tuple(kernels))
    arena = replace(plan.arena, scratch_offsets=MappingProxyType(scratch))
    return replace(plan, lowered=lowered, arena=arena, operators=planned_ops(lowered, arena))


def _with_more_scratch(
    plan: Plan, op: Op, kernel: Kernel, live: Sequence[Span]
) -> tuple[Kernel, int] | None:
    """The form with most scratch that fits beside what is live, and where; None where none does."""
    for roomier in kernel.scratch_forms:
        at = _gap(live, roomier.scratch_bytes)
        fits = at + roomier.scratch_bytes <= plan.arena.size_bytes
        if fits and _safe(plan, op, roomier.overlaps):
            return roomier, at
    return None


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


def _fixed_choices(items: Sequence[Sequence[Way]]) -> tuple[Choices, Choices, Choices]:
    """No way of any item; the quickest way of each; and of those without more constants."""
    quickest, plain = (tuple(_quickest(ways, most) for ways in items) for most in (math.inf, 0))
    return (None,) * len(items), quickest, plain


def _quickest(ways: Sequence[Way], most_bytes: float) -> int | None:
    """The place of that which saves most, of those with no more constants than that."""
    usable = [at for at, way in enumerate(ways) if way.saved > 0 and way.more_bytes <= most_bytes]
    return max(usable, key=lambda at: (ways[at].saved, -ways[at].more_bytes), default=None)


def _way(taken: _Taken, none: _Taken) -> Way:
    more = taken.functions - none.functions
    return Way(more, taken.size_bytes - none.size_bytes, none.cycles - taken.cycles)


def _spots(plan: Plan, op: Op, live: Sequence[Span], forms: Sequence[Form]) -> Iterator[_Spot]:
    for form in forms:
        if _safe(plan, op, form.overlaps):
            at = _gap(live, form.scratch_bytes)
            yield _Spot(form, at, at + form.scratch_bytes if form.scratch_bytes else 0)


def _useful(spots: Iterable[_Spot]) -> tuple[_Spot, ...]:
    """The spots, quickest first, without those that are never the best: of each function a spot
    that is as quick, or quicker, fits in every arena in which they do.
    """
    kept: list[_Spot] = []
    least: dict[str, int] = {}
    for spot in sorted(spots, key=lambda spot: (spot.form.cycles, -spot.form.number)):
        if spot.arena_bytes < least.get(spot.form.function, sys.maxsize):
            least[spot.form.function] = spot.arena_bytes
            kept.append(spot)
    return tuple(kept)


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


def _live(plan: Plan) -> list[list[Span]]:
    """The bytes of all tensors that are live at each step, in order."""
    live: list[list[Span]] = [[] for _ in plan.schedule.order]
    for name, (start, end) in plan.arena.lifetimes.items():
        span = _span(plan, name)
        for step in range(start, min(end, len(live))):
            live[step].append(span)
    for spans in live:
        spans.sort()
    return live


def _gap(live: Sequence[Span], size_bytes: int) -> int:
    """The lowest place for scratch among spans that are sorted."""
    at = 0
    for start, end in live:
        if start - at >= size_bytes:
            return at
        at = max(at, -(-end // SCRATCH_ALIGNMENT_BYTES) * SCRATCH_ALIGNMENT_BYTES)
    return at

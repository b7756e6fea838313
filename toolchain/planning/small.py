"""`--optimise size`: the kernels whose code and constants are smallest together.

A function counts once, however many operators call it, so the choice is over the whole network: a
set of functions, of which each operator takes the quickest that computes it. It begins with the
quickest of all, and gives up one or two functions at a time, those without which the firmware is
smallest, while an inference takes at most a quarter longer by the core's cycles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from toolchain.boards import Core
from toolchain.cost.predicted import PredictedCostModel
from toolchain.ir import Graph, Op
from toolchain.kernels.code_sizes import code_bytes
from toolchain.ops import kernel_of
from toolchain.ops.kernel import Input, Kernel
from toolchain.ops.lowering import Kernels, Lowered, lower
from toolchain.ops.moves import may_move
from toolchain.ops.preference import Preference

_SLOWER = 1.25
"""Time that the smallest kernels may take, over that of the quickest ones without more flash."""


_WORTH = 0.2
"""A step saves at least this part of the share of bytes of code that it costs of the time."""


@dataclass(frozen=True)
class _Way:
    """A kernel of an operator, its cycles, and bytes of what it alone reads of the flash."""

    name: str
    functions: frozenset[str]
    cycles: int
    constant_bytes: int


class _SmallKernels(Kernels):
    """Kernels of which each is the quickest among those of some names, with forms that call no
    other function.
    """

    def __init__(self, core: Core, names: frozenset[str]) -> None:
        super().__init__(core)
        self._names = names

    def _chosen(self, op: Op, graph: Graph) -> Kernel:
        """The kernel of an operator, or of a block, which may have none of these names."""
        every = list(_kernels(op, graph, self.core))
        allowed = [kernel for kernel in every if kernel.name in self._names] or every[:1]
        costs = PredictedCostModel(self.core)

        def cycles(kernel: Kernel) -> int:
            alone = Lowered(graph, self.core, (kernel,) * len(graph.ops))
            return costs.cost(alone, graph.ops.index(op)).count

        kernel = min(allowed, key=cycles) if len(allowed) > 1 else allowed[0]
        alike = tuple(form for form in kernel.scratch_forms if form.name == kernel.name)
        return replace(kernel, more_scratch=lambda: alike, more_flash=tuple)


def small_kernels(graph: Graph, core: Core) -> Kernels:
    """The smallest kernels of a graph on a core."""
    lowered, costs = lower(graph, core), PredictedCostModel(core)
    ways = [
        list(_ways(lowered, number, costs))
        for number, op in enumerate(graph.ops)
        if not may_move(op, graph)
    ]
    names = frozenset(way.name for each in ways for way in each)
    least, size = _figures(ways, names, core)
    time, whole, best = least, _code(ways, names, core), names
    while True:
        used = sorted({_taken(each, best).name for each in ways})
        left = [best - {*given} for count in (1, 2) for given in combinations(used, count)]
        found = [
            (bytes_of, cycles, allowed)
            for allowed in left
            if all(any(way.name in allowed for way in each) for each in ways)
            for cycles, bytes_of in (_figures(ways, allowed, core),)
            if cycles <= _SLOWER * least and bytes_of < size
            if (size - bytes_of) * least >= _WORTH * (cycles - time) * whole
        ]
        if not found:
            return _SmallKernels(core, best)
        size, time, best = min(found, key=lambda one: (one[0], one[1], sorted(one[2])))


def _kernels(op: Op, graph: Graph, core: Core) -> Iterator[Kernel]:
    """The kernels of an operator that may be smaller than others, each name once; that which is
    chosen for speed first. All give the reference's bytes. CMSIS-NN's are left out where they take
    more scratch, keep the output further from the input, or read no views: arenas would grow.
    """
    first = kernel_of(op, graph, core)
    arm = kernel_of(op, graph, core, Preference.CMSIS_NN)
    lean = arm.apart_bytes <= first.apart_bytes and first.strided <= arm.strided
    exact = [arm] if arm.of_cmsis_nn and lean and not (arm.inexact or first.inexact) else []
    named: dict[str, Kernel] = {}
    for kernel in (first, *reversed(first.scratch_forms), *first.smaller_forms, *exact):
        named.setdefault(kernel.name, kernel)
    yield from named.values()


def _ways(lowered: Lowered, number: int, costs: PredictedCostModel) -> Iterator[_Way]:
    graph = lowered.graph
    for kernel in _kernels(graph.ops[number], graph, lowered.core):
        references = (one for call in kernel.calls for one in call.references)
        read = {one.index for one in references if isinstance(one, Input)}
        tensors = graph.input_tensors(graph.ops[number])
        constants = (tensors[at] for at in read if at < len(tensors))
        apart = sum(x.size_bytes for x in constants if x is not None and x.is_constant)
        cycles = _cycles(costs, lowered, number, kernel)
        size = kernel.constant_bytes + apart
        yield _Way(kernel.name, frozenset(kernel.functions), cycles, size)


def _cycles(costs: PredictedCostModel, lowered: Lowered, number: int, kernel: Kernel) -> int:
    return costs.cost(lowered.with_kernel(number, kernel), number).count


def _taken(ways: Sequence[_Way], names: frozenset[str]) -> _Way:
    return min((way for way in ways if way.name in names), key=lambda way: way.cycles)


def _code(ways: Sequence[Sequence[_Way]], names: frozenset[str], core: Core) -> int:
    """Bytes of code where each operator takes its quickest way of these names."""
    taken = (_taken(each, names) for each in ways)
    return code_bytes(core, frozenset(name for way in taken for name in way.functions))


def _figures(ways: Sequence[Sequence[_Way]], names: frozenset[str], core: Core) -> tuple[int, int]:
    """Cycles, and bytes of code and constants, where each operator takes its quickest way of these
    names."""
    taken = [_taken(each, names) for each in ways]
    constants = sum(way.constant_bytes for way in taken)
    return sum(way.cycles for way in taken), _code(ways, names, core) + constants

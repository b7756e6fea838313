"""Which convolutions take quicker forms of their kernels, whose constants take more flash.

The choice is over the whole network, by predicted cycles within a budget of flash: at most one form
of each operator, as `search.knapsack` packs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from toolchain.boards import Board
from toolchain.cost import CostModel
from toolchain.cost.basis import CYCLES
from toolchain.cost.fitted import fit_of
from toolchain.cost.predicted import constant_bytes
from toolchain.ir.memory import peak_bytes
from toolchain.memory.plan import Plan
from toolchain.ops.code_bytes import code_bytes
from toolchain.ops.kernel import Kernel
from toolchain.ops.lowering import Forms, Lowered, lower
from toolchain.planning.options import PlanOptions
from toolchain.planning.ordering import choose_views
from toolchain.planning.placing import place
from toolchain.search.knapsack import Packed, pack

_PLACING_SECONDS = 0.5


@dataclass(frozen=True)
class Way:
    """One way to compute an operator, or all its blocks: what it takes beyond the first way.

    functions  those that it calls instead of the kernel's own.
    """

    functions: frozenset[str]
    more_bytes: int
    saved: int


def quick_forms(
    lowered: Lowered, costs: CostModel, spare: int, most_scratch: Sequence[int]
) -> Forms:
    """The forms that save most time within so many bytes of flash. `most_scratch`: for each
    operator, the most bytes that scratch and the distance between input and output may take.
    """
    candidates: dict[str, list[tuple[Way, str]]] = {}
    for number, kernel in enumerate(lowered.kernels):
        for form in known_forms(kernel, lowered):
            each = [
                (_cycles(lowered, number, one, costs), one)
                for one in by_scratch(form)
                if apart_bytes(one) <= most_scratch[number]
            ]
            if not each:
                continue
            cycles, quickest = min(each, key=lambda pair: pair[0])
            way = Way(
                frozenset(form.functions),
                form.packed_bytes - constant_bytes(lowered, number),
                costs.cost(lowered, number).count - cycles,
            )
            op = lowered.graph.ops[number]
            candidates.setdefault(op.part_of or op.name, []).append((way, quickest.title))
    names, ways = list(candidates), [[way for way, _ in each] for each in candidates.values()]
    chosen = within(ways, spare).choices
    return {
        name: candidates[name][at][1]
        for name, at in zip(names, chosen, strict=True)
        if at is not None
    }


def within(items: Sequence[Sequence[Way]], spare: int) -> Packed:
    """Choose at most one way for each item: the most time saved within so many bytes of flash. The
    bytes of a function that several ways call count once.
    """
    functions = sorted({name for ways in items for way in ways for name in way.functions})
    best: tuple[int | None, ...] = (None,) * len(items)
    worth, optimal = (0, 0), True
    for count in range(1, len(functions) + 1):
        for allowed in combinations(functions, count):
            code = sum(map(code_bytes, allowed))
            left = spare - code
            if left < 0:
                continue
            usable = [
                [
                    at
                    for at, way in enumerate(ways)
                    if way.functions <= set(allowed) and way.saved > 0
                ]
                for ways in items
            ]
            sizes = [
                [(ways[at].more_bytes, ways[at].saved) for at in each]
                for ways, each in zip(items, usable, strict=True)
            ]
            packed = pack(sizes, left)
            chosen = tuple(
                None if at is None else each[at]
                for each, at in zip(usable, packed.choices, strict=True)
            )
            taken = [ways[at] for ways, at in zip(items, chosen, strict=True) if at is not None]
            size = code + sum(way.more_bytes for way in taken)
            optimal &= packed.optimal
            if (figures := (sum(way.saved for way in taken), -size)) > worth:
                best, worth = chosen, figures
    return Packed(best, optimal)


def apart_bytes(kernel: Kernel) -> int:
    """Bytes of scratch, and of the distance by which the output must lie below the input."""
    leads = (overlap.lead_bytes for overlap in kernel.overlaps)
    return kernel.scratch_bytes + max(min(leads, default=0), 0)


def known_forms(kernel: Kernel, lowered: Lowered) -> tuple[Kernel, ...]:
    """The forms of which the time is known on this core."""
    known = fit_of(lowered.core)
    if known.unit != CYCLES:
        return ()
    return tuple(form for form in kernel.more_flash() if form.name in known.kernels)


def by_scratch(form: Kernel) -> Iterable[Kernel]:
    """The forms with more scratch than this one, quickest first, and this one."""
    return (*form.more_scratch(), form)


def _cycles(lowered: Lowered, number: int, kernel: Kernel, costs: CostModel) -> int:
    """The cost of an operator with another kernel."""
    return costs.cost(with_kernel(lowered, number, kernel), number).count


def with_kernel(lowered: Lowered, number: int, kernel: Kernel) -> Lowered:
    """The lowered graph with another kernel for operator `number`."""
    kernels = (*lowered.kernels[:number], kernel, *lowered.kernels[number + 1 :])
    return replace(lowered, kernels=kernels)


def placed(
    whole: Plan,
    forms: Mapping[str, str],
    target: Board,
    options: PlanOptions,
    *,
    others: bool = False,
) -> Plan:
    """The plan with the forms that are named, placed with little work: in the order of `whole`, or
    with `others` in another one, too."""
    core, preference = whole.lowered.core, whole.lowered.preference
    lowered = lower(whole.graph, core, preference, forms)
    problem = choose_views(lowered)
    order = whole.schedule.order
    schedule = replace(whole.schedule, peak_bytes=peak_bytes(problem, order))
    asked = options.time_limit_seconds
    seconds = _PLACING_SECONDS if asked is None else min(asked, _PLACING_SECONDS)
    limited = replace(options, time_limit_seconds=seconds)
    made = place(lowered, target, problem, schedule, limited, others=others)
    return replace(made, boundaries=whole.boundaries)

"""The kernels among which a planner chooses for one operator, and what each costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from toolchain.boards import Core
from toolchain.cost import CostModel
from toolchain.cost.basis import CYCLES
from toolchain.cost.fitted import fit_of
from toolchain.ops.kernel import Kernel
from toolchain.ops.lowering import Lowered


@dataclass(frozen=True)
class Alternative:
    """A kernel of an operator, and its cost in the unit of the cost model."""

    kernel: Kernel
    count: int

    @property
    def title(self) -> str:
        return self.kernel.title


def timed_forms(kernel: Kernel, core: Core) -> tuple[Kernel, ...]:
    """The forms whose constants take more flash, as far as their time on this core is known."""
    fit = fit_of(core)
    if fit.unit != CYCLES:
        return ()
    return tuple(form for form in kernel.flash_forms if form.name in fit.kernels)


def kernels_of(
    kernel: Kernel, core: Core, names: Collection[str] | None = None
) -> Iterator[Kernel]:
    """The kernel, its timed forms, and each of these with more scratch, which comes behind it.

    `names`: of the forms only those so called; None for all.
    """
    for form in (kernel, *timed_forms(kernel, core)):
        if form is kernel or names is None or form.name in names:
            yield form
            yield from reversed(form.scratch_forms)


def alternatives(
    lowered: Lowered, number: int, costs: CostModel, names: Collection[str] | None = None
) -> tuple[Alternative, ...]:
    """The kernel of operator `number` first, then those of `kernels_of` that are quicker than every
    one that takes no more scratch.
    """
    kept: list[Alternative] = []
    for kernel in kernels_of(lowered.kernels[number], lowered.core, names):
        count = costs.cost(lowered.with_kernel(number, kernel), number).count
        other = Alternative(kernel, count)
        if not any(_as_good(one, other) for one in kept):
            better = [one for one in kept[1:] if not _as_good(other, one)]
            kept = [*kept[:1], *better, other]
    return tuple(kept)


def _as_good(one: Alternative, other: Alternative) -> bool:
    """Whether the first takes no more scratch, distance and time than the other."""
    return (
        one.count <= other.count
        and one.kernel.scratch_bytes <= other.kernel.scratch_bytes
        and one.kernel.apart_bytes <= other.kernel.apart_bytes
    )

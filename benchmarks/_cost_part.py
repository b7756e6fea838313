"""Which part of the grid `benchmarks.cost` traces."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks._cost_grid import GRID, families, kernels, name_of
from toolchain.boards import Core
from toolchain.cost.fitted import ROUGH
from toolchain.cost.key import COPIES
from toolchain.ops.preference import Preference
from toolchain.timing.kernel_firmware import Kernel

FIT, HELD_OUT = SEEDS = 1, 2
"""Of the shapes that a fit is made by, and of those that it has not seen."""
AT_ONCE = 32
"""Kernels in one firmware: the code and weights of twice as many overrun 512 KiB."""


@dataclass(frozen=True)
class Part:
    """What is traced of the grid: all of it by default.

    `kinds`: only these families. `names`: only these kernels. `most`: so many of each family.
    `each`: so many of each kernel in a family. `chosen`: only kernels that plans choose. `every`:
    all kernels that the grid has shapes of, where that is known.
    """

    kinds: tuple[str, ...] = ()
    names: frozenset[str] | None = None
    most: int | None = None
    each: int | None = None
    chosen: bool = False
    every: frozenset[str] | None = None

    @property
    def whole(self) -> bool:
        return not self.kinds and self.names is None and not self.chosen

    def has(self, name: str) -> bool:
        """Whether the grid has shapes of what coefficients call so, as far as is known."""
        return self.every is None or name in self.every or name in (*ROUGH, COPIES)

    def of_family(self, family: str, seed: int, core: Core) -> Iterator[Kernel]:
        """Its kernels of one family."""
        seen: dict[str, int] = defaultdict(int)
        for one in kernels(family, seed, core, self.most):
            name = name_of(one)
            seen[name] += 1
            wanted = self.names is None or name in self.names
            taken = self.each is None or seen[name] <= self.each
            if wanted and taken and (not self.chosen or one.preference is Preference.AUTO):
                yield one

    def lots(self, seed: int, core: Core) -> Iterator[list[Kernel]]:
        """Its kernels in lots for one firmware: each large family apart, and each preference."""
        rest: dict[Preference, list[Kernel]] = defaultdict(list)
        for family in self.kinds or families():
            found: dict[Preference, list[Kernel]] = defaultdict(list)
            for one in self.of_family(family, seed, core):
                found[one.preference].append(one)
            for preference, each in found.items():
                if family in GRID and len(each) >= AT_ONCE:
                    yield from _pieces(each)
                else:
                    rest[preference] += each
        for each in rest.values():
            yield from _pieces(each)

    def shared(self, core: Core) -> frozenset[str]:
        """The kernels of which families that it leaves out have shapes, too."""
        others = [name for name in families() if self.kinds and name not in self.kinds]
        every = (kernels(name, seed, core) for name in others for seed in SEEDS)
        return frozenset(name_of(one) for found in every for one in found)


def _pieces(found: Sequence[Kernel]) -> Iterator[list[Kernel]]:
    return (list(found[i : i + AT_ONCE]) for i in range(0, len(found), AT_ONCE))

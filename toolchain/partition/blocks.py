"""Which indices each block of each operator computes, and which earlier ones stay for it.

MOTES, section 4.4, and the overlapping tiles of MCUNetV2 (Lin et al., 2021) beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import pairwise

from toolchain.ops.spec import Reach
from toolchain.partition.region import CannotSplitError, Region

Run = tuple[int, int]
"""Half-open [begin, end) along a tensor's split axis."""


class Mode(Enum):
    """How neighbouring blocks come by what both need.

    SLIDING computes every index once and keeps what later blocks read. TILES keeps nothing and
    computes it again.
    """

    SLIDING = "sliding"
    TILES = "tiles"


@dataclass(frozen=True)
class Blocks:
    """`computed[k][op]`: the run of block k, of the operator's output or of what it sums over;
    absent where block k computes nothing of it.

    `held[k][tensor]`: what block k or a later one reads of all that is computed by then.
    """

    region: Region
    count: int
    mode: Mode
    computed: tuple[Mapping[int, Run], ...]
    held: tuple[Mapping[str, Run], ...]

    def reads(self, k: int, op: int) -> tuple[Run | None, ...]:
        """For each operand of `op` in block k the run it reads; None for the whole operand."""
        region, run = self.region, self.computed[k][op]
        result: list[Run | None] = []
        for name, reach in zip(region.op(op).inputs, region.reaches(op), strict=True):
            if not name or reach is None:
                result.append(None)
                continue
            size = region.graph.tensors[name].shape[reach.axis]
            result.append(reach.needs(*run, size))
        return tuple(result)

    def kept_from(self, k: int, tensor: str, end: int) -> int:
        """The first index of what is there, up to `end`, that a block after k reads."""
        if self.mode is Mode.TILES or k + 1 == self.count:
            return end
        return min(self.held[k + 1][tensor][0], end)

    @cached_property
    def last_reader(self) -> Mapping[tuple[int, str], int]:
        """For each block and tensor that the region makes, the last operator to read it there."""
        made = {self.region.op(op).outputs[0] for op in self.region.ops}
        found: dict[tuple[int, str], int] = {}
        for k, computed in enumerate(self.computed):
            for op in computed:
                for name in self.region.op(op).present_inputs():
                    if name in made:
                        found[k, name] = op
        return found


def blocks(region: Region, count: int, mode: Mode) -> Blocks:
    """`count` blocks as even as can be. Raises CannotSplitError for one that would be empty."""
    computed = _tiles(region, count) if mode is Mode.TILES else _slides(region, count)
    result = Blocks(region, count, mode, tuple(computed), tuple(_held(region, computed, mode)))
    for k, runs in enumerate(result.computed):
        for op, own in runs.items():
            name = region.op(op).name
            for run in result.reads(k, op):
                if run is not None and run[0] >= run[1]:
                    raise CannotSplitError(f"block {k} of {name!r} reads nothing but padding")
            if any(reach is not None and reach.splits(*own) for reach in region.reaches(op)):
                raise CannotSplitError(f"block {k} of {name!r} ends within what is made at once")
    return result


def _size(region: Region, tensor: str) -> int:
    return region.graph.tensors[tensor].shape[region.axis_of(tensor)]


def _bound(size: int, k: int, count: int) -> int:
    """Where block k begins: ceil(size * k / count), so that the last one is the smaller."""
    return -(-size * k // count)


def _needed(region: Region, wanted: Mapping[str, Run]) -> dict[str, Run]:
    """The runs of all operators' outputs that make the `wanted` runs of those that leave."""
    need = {name: run for name, run in wanted.items() if run[0] < run[1]}
    for op in reversed(region.ops):
        run = need.get(region.op(op).outputs[0])
        if run is None:
            continue
        for name, reach in _inner_reaches(region, op):
            begin, end = reach.needs(*run, _size(region, name))
            if begin >= end:
                raise CannotSplitError(f"a block of {name!r} would be padding alone")
            old = need.get(name, (begin, end))
            need[name] = (min(old[0], begin), max(old[1], end))
    return need


def _tiles(region: Region, count: int) -> list[dict[int, Run]]:
    result = []
    for k in range(count):
        wanted = {}
        for name in (*region.joined, *region.reduced):
            size = region.length(region.graph.producers[name])
            if size < count:
                raise CannotSplitError(f"{name!r} has fewer than {count} indices")
            wanted[name] = (_bound(size, k, count), _bound(size, k + 1, count))
        need = _needed(region, wanted)
        result.append({op: need[region.op(op).outputs[0]] for op in region.ops})
    for name in region.joined:
        op = region.graph.producers[name]
        runs = [computed[op] for computed in result]
        if any(first[1] != second[0] for first, second in pairwise(runs)):
            raise CannotSplitError(f"{name!r} is both joined and read inside with a halo")
    return result


def _slides(region: Region, count: int) -> list[dict[int, Run]]:
    """Operators that read only from outside go forward evenly, in `count` steps; the others
    compute in each step what the indices that are there by then allow."""
    done = {region.op(op).outputs[0]: 0 for op in region.ops}
    inner = {op: _inner_reaches(region, op) for op in region.ops}
    for op, reaches in inner.items():
        if not reaches and region.length(op) < count:
            raise CannotSplitError(f"{region.op(op).name!r} has fewer than {count} indices")
    result = []
    for k in range(count):
        computed: dict[int, Run] = {}
        for op, reaches in inner.items():
            name = region.op(op).outputs[0]
            size = region.length(op)
            end = size if reaches else _bound(size, k + 1, count)
            for operand, reach in reaches:
                if done[operand] < _size(region, operand):
                    end = min(end, max(reach.possible(done[operand]), 0))
            if end > done[name]:
                computed[op] = (done[name], end)
                done[name] = end
        result.append(computed)
    return result


def _inner_reaches(region: Region, op: int) -> list[tuple[str, Reach]]:
    """The operands of `op` that the region makes, and how far it reaches into them."""
    return [
        (name, reach)
        for name, reach in zip(region.op(op).inputs, region.reaches(op), strict=True)
        if reach is not None and region.graph.producers.get(name) in region.axes
    ]


def _held(region: Region, computed: list[dict[int, Run]], mode: Mode) -> list[dict[str, Run]]:
    """What stays of each tensor at each block: from the first index that is read from then on."""
    result: list[dict[str, Run]] = []
    done = {region.op(op).outputs[0]: 0 for op in region.ops}
    for runs in computed:
        held: dict[str, Run] = {}
        if mode is Mode.TILES:
            for op, run in runs.items():
                held[region.op(op).outputs[0]] = run
            result.append(held)
            continue
        first: dict[str, int] = {}
        for op in region.ops:
            begin = done[region.op(op).outputs[0]]
            if begin >= region.length(op):
                continue
            for name, reach in _inner_reaches(region, op):
                low = max(reach.first(begin), 0)
                first[name] = min(first.get(name, low), low)
        for op in region.ops:
            name = region.op(op).outputs[0]
            end = runs[op][1] if op in runs else done[name]
            begin = min(first.get(name, end), end)
            held[name] = (begin, end)
        for op, run in runs.items():
            done[region.op(op).outputs[0]] = run[1]
        result.append(held)
    return result

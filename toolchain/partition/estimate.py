"""What a scheme costs, without building its graph: bytes live at the worst moment, and time.

The steps are those of `scheme.split`, in the same order; alignment is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from toolchain.boards import Core
from toolchain.cost import CostModel
from toolchain.ir import Graph, Op
from toolchain.ops.block_concat import BlockConcat
from toolchain.partition.blocks import Blocks, Run
from toolchain.partition.region import Region

_Key = tuple[int, tuple[Run | None, ...], Run]


@dataclass(frozen=True)
class Estimate:
    """`bytes_inside`: the most that the region's own windows, results and scratch take at a step,
    the tensors from outside left out. `count`: instructions or cycles of all its blocks."""

    bytes_inside: int
    count: int


class Estimator:
    """Estimates for regions of one graph; block costs are computed once each."""

    def __init__(
        self, graph: Graph, core: Core, costs: CostModel, scratch_bytes: tuple[int, ...]
    ) -> None:
        self._graph = graph
        self._core = core
        self._costs = costs
        self._scratch = scratch_bytes
        self._known: dict[_Key, int] = {}
        self._copies: dict[tuple[str, int], int] = {}

    @cached_property
    def unsplit(self) -> tuple[int, ...]:
        """The cost of every operator as it is."""
        return tuple(self._costs.cost(op, self._graph, self._core).count for op in self._graph.ops)

    def estimate(self, plan: Blocks) -> Estimate:
        """Walk the blocks as they will run."""
        region, count = plan.region, 0
        unit = {name: _bytes_per_index(region, name) for name in _made(region)}
        joined = {name: self._graph.tensors[name].size_bytes for name in region.joined}
        base = sum(joined.values())
        held: dict[str, Run] = {}
        live = peak = 0  # bytes of all that is held
        for k in range(plan.count):
            for op, run in plan.computed[k].items():
                name = region.op(op).outputs[0]
                old = held.pop(name, None)
                first = run[0]
                if old is not None:
                    live -= (old[1] - old[0]) * unit[name]
                    if old[0] < run[0] and plan.held[k][name][0] < run[0]:
                        first = old[0]
                        count += self._copy(name, (run[0] - first) * unit[name])
                window = (run[1] - first) * unit[name]
                if name in joined:  # the block lies in the whole; a window is a copy
                    own = window if first < run[0] else 0
                    extra = (run[0] - first) * unit[name]
                else:
                    own, extra = window, 0
                peak = max(peak, live + own + extra + self._scratch[op])
                if own:
                    held[name] = (first, run[1])
                    live += own
                count += self._block(plan, k, op, run)
                for operand in dict.fromkeys(region.op(op).present_inputs()):
                    if plan.last_reader.get((k, operand)) != op or operand not in held:
                        continue
                    have = held[operand]
                    begin = plan.kept_from(k, operand, have[1])
                    if begin <= have[0]:
                        continue
                    live -= (begin - have[0]) * unit[operand]
                    held[operand] = (begin, have[1])
                    if begin >= have[1]:
                        del held[operand]
                    else:
                        count += self._copy(operand, (have[1] - begin) * unit[operand])
        return Estimate(base + peak, count)

    def _copy(self, name: str, size_bytes: int) -> int:
        key = (name, size_bytes)
        if key not in self._copies:
            tensor = self._graph.tensors[name]
            length = size_bytes // tensor.dtype.size_bytes
            x = replace(tensor, name="x", shape=(length,))
            y = replace(tensor, name="y", shape=(length,))
            op = Op("block_concat", "copy", ("x",), ("y",), BlockConcat(0, ((0, length),)))
            graph = Graph.build("copy", [x, y], [op], ["x"], ["y"])
            self._copies[key] = self._costs.cost(op, graph, self._core).count
        return self._copies[key]

    def _block(self, plan: Blocks, k: int, index: int, run: Run) -> int:
        """The cost of one block: blocks of one shape cost the same."""
        region, op = plan.region, plan.region.op(index)
        axis, reads = region.axes[index], plan.reads(k, index)
        lengths = tuple(None if r is None else (0, r[1] - r[0]) for r in reads)
        beyond = (0, 0)
        for name, reach in zip(op.inputs, axis.reaches, strict=True):
            if name and reach is not None:
                beyond = reach.beyond(*run, self._graph.tensors[name].shape[reach.axis])
                break
        key = (index, (*lengths, beyond), (0, run[1] - run[0]))
        if key not in self._known:
            shapes: dict[str, tuple[int, int]] = {op.outputs[0]: (axis.axis, run[1] - run[0])}
            for name, reach, read in zip(op.inputs, axis.reaches, reads, strict=True):
                if name and reach is not None and read is not None:
                    shapes[name] = (reach.axis, read[1] - read[0])
            block = replace(op, attributes=axis.attributes(*beyond))
            self._known[key] = self._costs.cost(
                block, _resized(self._graph, block, shapes), self._core
            ).count
        return self._known[key]


def _made(region: Region) -> tuple[str, ...]:
    return tuple(region.op(op).outputs[0] for op in region.ops)


def _bytes_per_index(region: Region, name: str) -> int:
    tensor, axis = region.graph.tensors[name], region.axis_of(name)
    return math.prod(d for i, d in enumerate(tensor.shape) if i != axis) * tensor.dtype.size_bytes


def _resized(graph: Graph, op: Op, lengths: Mapping[str, tuple[int, int]]) -> Graph:
    """The operator alone, with other lengths along an axis of some activations."""
    tensors = []
    for name in (*op.present_inputs(), *op.outputs):
        tensor = graph.tensors[name]
        if name in lengths and not tensor.is_constant:
            axis, length = lengths[name]
            shape = tuple(length if i == axis else d for i, d in enumerate(tensor.shape))
            tensor = replace(tensor, shape=shape)
        tensors.append(tensor)
    given = [n for n in op.present_inputs() if not graph.tensors[n].is_constant]
    return Graph.build("block", tensors, [op], given, op.outputs)

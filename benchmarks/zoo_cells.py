"""Networks of cells: NASNet-A, AmoebaNet-A and DARTS, on CIFAR-10 and on ImageNet.

A cell sums pairs of operations on earlier results, of which the first two are the outputs of the
two cells before; see Zoph et al. (CVPR 2018, figure 4), Real et al. (AAAI 2019, figure 5), Liu et
al. (ICLR 2019, figures 4 and 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from toolchain.contact.network import Network
from toolchain.ir import Graph

Pair = tuple[str, int, str, int]
"""The left operation and the index of its operand, then the right ones."""


@dataclass(frozen=True)
class Cells:
    """The pairs of a normal and of a reduction cell, and which results each concatenates."""

    normal: tuple[Pair, ...]
    normal_joins: tuple[int, ...]
    reduction: tuple[Pair, ...]
    reduction_joins: tuple[int, ...]


NASNET_A = Cells(
    normal=(
        ("sep5", 1, "sep3", 0),
        ("sep5", 0, "sep3", 0),
        ("average", 1, "identity", 0),
        ("average", 0, "average", 0),
        ("sep3", 1, "identity", 1),
    ),
    normal_joins=(0, 2, 3, 4, 5, 6),
    reduction=(
        ("sep5", 1, "sep7", 0),
        ("max", 1, "sep7", 0),
        ("average", 1, "sep5", 0),
        ("identity", 3, "average", 2),
        ("sep3", 2, "max", 1),
    ),
    reduction_joins=(3, 4, 5, 6),
)
AMOEBANET_A = Cells(
    normal=(
        ("average", 0, "max", 0),
        ("identity", 0, "average", 1),
        ("sep5", 2, "sep3", 1),
        ("sep3", 2, "identity", 1),
        ("average", 4, "sep3", 0),
    ),
    normal_joins=(3, 5, 6),
    reduction=(
        ("average", 0, "sep3", 1),
        ("max", 1, "max", 0),
        ("max", 0, "sep7", 2),
        ("sep7", 0, "average", 1),
        ("sep3", 3, "lines7", 0),
    ),
    reduction_joins=(4, 5, 6),
)
DARTS_V2 = Cells(
    normal=(
        ("sep3", 0, "sep3", 1),
        ("sep3", 0, "sep3", 1),
        ("sep3", 1, "identity", 0),
        ("identity", 0, "dilated3", 2),
    ),
    normal_joins=(2, 3, 4, 5),
    reduction=(
        ("max", 0, "max", 1),
        ("identity", 2, "max", 1),
        ("max", 0, "identity", 2),
        ("identity", 2, "max", 1),
    ),
    reduction_joins=(2, 3, 4, 5),
)


def _separable(size: int) -> Callable[[Network, str, int, int], str]:
    """ReLU, depthwise, pointwise, twice; only the first has the stride."""

    def make(net: Network, x: str, filters: int, stride: int) -> str:
        inner = net.conv(net.depthwise(net.relu(x), size, stride), filters)
        return net.conv(net.depthwise(net.relu(inner), size), filters)

    return make


def _dilated(net: Network, x: str, filters: int, stride: int) -> str:
    return net.conv(net.depthwise(net.relu(x), 3, stride, dilation=2), filters)


def _lines(net: Network, x: str, filters: int, stride: int) -> str:
    """1x7, then 7x1."""
    return net.conv(net.conv(net.relu(x), filters, (1, 7), stride), filters, (7, 1))


OPERATIONS: dict[str, Callable[[Network, str, int, int], str]] = {
    "identity": lambda net, x, filters, stride: x,
    "average": lambda net, x, filters, stride: net.pool(x, "average", 3, stride),
    "max": lambda net, x, filters, stride: net.pool(x, "max", 3, stride),
    "sep3": _separable(3),
    "sep5": _separable(5),
    "sep7": _separable(7),
    "dilated3": _dilated,
    "lines7": _lines,
}


def cell(net: Network, cells: Cells, before: str | None, last: str, filters: int, step: int) -> str:
    """One cell; `step` 2 makes a reduction cell. `before`: the cell before the last."""
    squeezed = net.conv(net.relu(last), filters)
    results = [squeezed if before is None else _fitted(net, before, squeezed, filters), squeezed]
    for left, i, right, j in cells.normal if step == 1 else cells.reduction:
        one = OPERATIONS[left](net, results[i], filters, step if i < 2 else 1)
        other = OPERATIONS[right](net, results[j], filters, step if j < 2 else 1)
        results.append(net.add(one, other))
    joins = cells.normal_joins if step == 1 else cells.reduction_joins
    return net.concat([results[i] for i in joins])


def _fitted(net: Network, x: str, like: str, filters: int) -> str:
    """As many channels as wanted, and half the size where that is needed (factorised)."""
    if net.shape(x)[1] == net.shape(like)[1]:
        return net.conv(net.relu(x), filters)
    active = net.relu(x)
    even = net.conv(active, filters // 2, stride=2)
    odd = net.conv(net.odd_pixels(active), filters - filters // 2)
    return net.concat([even, odd])


def cifar10(name: str, cells: Cells, repeats: int, filters: int, size: int = 32) -> Graph:
    """A stem of 32 filters, then `repeats` normal cells at each of three resolutions."""
    net = Network(name, (1, size, size, 3))
    before, last = None, net.conv(net.input, 32, 3)
    for stage in range(3):
        for step in ([2] if stage else []) + [1] * repeats:
            filters *= step
            before, last = last, cell(net, cells, before, last, filters, step)
    return net.classifier(net.relu(last), 10)


def imagenet(name: str, cells: Cells, repeats: int, filters: float, size: int = 224) -> Graph:
    """A stem of 32 filters and two reduction cells, then `repeats` normal cells at each of three
    resolutions. `filters`: those of the stem, half those of the first reduction cell."""
    net = Network(name, (1, size, size, 3))
    before, last = None, net.conv(net.input, 32, 3, 2)
    for steps in ([2, 2], [2], [2]):
        for step in steps + [1] * repeats:
            filters *= step
            before, last = last, cell(net, cells, before, last, int(filters), step)
    return net.classifier(net.relu(last), 1000)

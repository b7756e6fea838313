"""Irregular graphs: RandWire networks, and SwiftNet's cells."""

from __future__ import annotations

import numpy as np

from toolchain.contact.network import Network
from toolchain.ir import Graph
from toolchain.ops.arithmetic.activation import Activation

Step = tuple[str, str, tuple[str, ...], int]
"""Name of the result, kind, names of the operands, channels."""


def watts_strogatz(
    rng: np.random.Generator, vertices: int, neighbours: int, rewire: float
) -> list[tuple[int, int]]:
    """Edges (a, b), a < b: a ring, each edge rewired with probability `rewire`."""
    linked = np.eye(vertices, dtype=bool)
    for a in range(vertices):
        for step in range(1, neighbours // 2 + 1):
            b = (a + step) % vertices
            linked[a, b] = linked[b, a] = True
    for a in range(vertices):
        for step in range(1, neighbours // 2 + 1):
            b = (a + step) % vertices
            if rng.random() < rewire:
                other = int(rng.choice(np.flatnonzero(~linked[a])))
                linked[a, b] = linked[b, a] = False
                linked[a, other] = linked[other, a] = True
    return [(a, b) for a in range(vertices) for b in range(a + 1, vertices) if linked[a, b]]


def randwire_cell(net: Network, x: str, channels: int, rng: np.random.Generator) -> str:
    """WS(32, 4, 0.75); each vertex sums, then ReLU and a separable convolution."""
    edges = watts_strogatz(rng, 32, 4, 0.75)
    made: list[str] = []
    for vertex in range(32):
        before = [made[a] for a, b in edges if b == vertex]
        active = net.relu(net.sum(before) if before else x)
        made.append(net.conv(net.depthwise(active, 3, 1 if before else 2), channels))
    inner = {a for a, _ in edges}
    return net.sum([made[vertex] for vertex in range(32) if vertex not in inner])


def randwire(name: str, channels: int = 78, seed: int = 1, size: int = 224) -> Graph:
    """The small regime of Xie et al. (ICCV 2019), three random cells."""
    rng = np.random.default_rng(seed)
    net = Network(name, (1, size, size, 3), seed)
    x = net.conv(net.input, channels // 2, 3, 2, Activation.RELU)
    x = net.conv(x, channels, 3, 2)
    for factor in (1, 2, 4):
        x = randwire_cell(net, x, factor * channels, rng)
    return net.classifier(net.conv(x, 1280), 1000)


def randwire_one_cell(name: str, channels: int = 78, size: int = 56, seed: int = 1) -> Graph:
    """The first of the three cells, which holds the peak."""
    net = Network(name, (1, size, size, channels), seed)
    return net.graph(randwire_cell(net, net.input, channels, np.random.default_rng(seed)))


SWIFTNET = {
    "a": (
        (28, 28, 32),
        (
            ("a", "conv", ("input",), 32),
            ("b", "conv", ("a",), 32),
            ("c", "conv", ("input",), 32),
            ("d", "conv", ("a",), 32),
            ("e", "conv", ("input", "a"), 32),
            ("f", "conv", ("d", "e"), 32),
            ("g", "conv", ("a", "f"), 32),
            ("h", "conv", ("input", "c", "d", "e"), 32),
            ("i", "separable", ("e",), 32),
            ("j", "separable", ("g",), 32),
            ("k", "separable", ("e", "f"), 32),
            ("l", "separable", ("input", "c"), 32),
            ("m", "conv", ("b", "e", "g", "h"), 32),
            ("n", "conv", ("i", "j", "k", "l", "m"), 48),
        ),
    ),
    "b": (
        (14, 14, 48),
        (
            ("a", "conv", ("input",), 48),
            ("b", "conv", ("input",), 48),
            ("c", "conv", ("input",), 48),
            ("d", "conv", ("input",), 48),
            ("e", "separable", ("a",), 48),
            ("f", "conv", ("a", "e"), 48),
            ("g", "separable", ("a",), 48),
            ("h", "conv", ("g", "b"), 48),
            ("i", "conv", ("b",), 48),
            ("j", "conv", ("input", "a", "e", "c"), 48),
            ("k", "conv", ("j",), 48),
            ("l", "separable", ("a", "e"), 48),
            ("m", "conv", ("d", "f", "h", "k", "i", "l"), 80),
        ),
    ),
    "c": (
        (7, 7, 80),
        (
            ("a", "conv", ("input",), 64),
            ("b", "conv", ("a",), 64),
            ("c", "conv", ("a",), 64),
            ("d", "separable", ("a",), 64),
            ("e", "conv", ("input", "d"), 64),
            ("f", "separable", ("a",), 64),
            ("g", "separable", ("b",), 64),
            ("h", "separable", ("b",), 64),
            ("i", "separable", ("a", "d"), 64),
            ("j", "separable", ("a",), 64),
            ("k", "separable", ("a",), 64),
            ("l", "conv", ("e", "f", "g", "c", "h", "i", "j", "k"), 76),
        ),
    ),
}
"""SwiftNet (Cheng et al., 2019): the cells of the network that won the Visual Wake Words challenge.
Input shape, then the steps; several operands are concatenated, and the last step's result is added
to a convolution of the input."""


def swiftnet_cell(name: str, which: str) -> Graph:
    shape, steps = SWIFTNET[which]
    net = Network(name, (1, *shape))
    made = {"input": net.input}
    for result, kind, operands, channels in steps:
        x = net.concat([made[operand] for operand in operands])
        if kind == "separable":
            x = net.depthwise(x, 3)
        made[result] = net.conv(x, channels, relu=Activation.RELU6)
    last = made[steps[-1][0]]
    return net.graph(net.add(net.conv(net.input, net.channels(last)), last))

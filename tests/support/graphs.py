"""Small graphs with chosen names, for tests of what surrounds operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.convolution.conv2d import Conv2D
from toolchain.ops.elementwise.addition import Sum
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.window import Padding

QUANTISATION = Quantisation((0.05,), (-3,))


def activation(name: str, shape: tuple[int, ...]) -> Tensor:
    return Tensor(name, shape, DType.INT8, QUANTISATION)


def dense_chain(
    name: str,
    widths: Sequence[int],
    seed: int = 0,
    tensors: Sequence[str] = (),
    ops: Sequence[str] = (),
) -> Graph:
    """Fully connected layers from `widths[0]` to `widths[-1]` elements.

    Activations are called `tensors` (default x, t1, ..., y), operators `ops`, weights after those.
    """
    rng = np.random.default_rng(seed)
    inner = [f"t{i}" for i in range(1, len(widths) - 1)]
    names = list(tensors) or ["x", *inner, "y"]
    calls = list(ops) or [f"fc{i}" for i in range(len(widths) - 1)]
    table = [activation(n, (1, width)) for n, width in zip(names, widths, strict=True)]
    made = []
    for i, op in enumerate(calls):
        shape = (widths[i + 1], widths[i])
        weights = rng.integers(-127, 128, shape).astype(np.int8)
        scale = Quantisation((0.01,), (0,))
        table.append(Tensor(f"{op} weights", shape, DType.INT8, scale, weights))
        inputs = (names[i], f"{op} weights")
        made.append(Op("fully_connected", op, inputs, (names[i + 1],), FullyConnected()))
    return Graph.build(name, table, made, [names[0]], [names[-1]])


def reshape(source: str, target: str, shape: tuple[int, ...]) -> Op:
    return Op("reshape", f"reshape {target}", (source,), (target,), Reshape(shape))


def skip_network(height: int = 50, width: int = 50, depth: int = 8) -> Graph:
    """x + pointwise(conv(x)): three tensors of x's size, of which two live at a time."""
    rng = np.random.default_rng(3)
    shape = (1, height, width, depth)
    names = ("x", "c", "p", "y")
    table = [Tensor(n, shape, DType.INT8, Quantisation((0.125,), (3,))) for n in names]
    for name, size in (("c weights", 3), ("p weights", 1)):
        data = rng.integers(-127, 128, (depth, size, size, depth)).astype(np.int8)
        table.append(Tensor(name, data.shape, DType.INT8, Quantisation((0.002,), (0,)), data))
    same = Conv2D((1, 1), (1, 1), Padding(1, 1, 1, 1))
    ops = [
        Op("conv2d", "conv", ("x", "c weights"), ("c",), same),
        Op("conv2d", "point", ("c", "p weights"), ("p",), replace(same, padding=Padding())),
        Op("add", "skip", ("x", "p"), ("y",), Sum(Activation.NONE)),
    ]
    return Graph.build("skip", table, ops, ["x"], ["y"])

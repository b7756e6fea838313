"""Small graphs with chosen names, for tests of what surrounds operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.fully_connected import FullyConnected
from toolchain.ops.reshape import Reshape

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

"""Fully connected layers that take their kernels through all their loops."""

from __future__ import annotations

import numpy as np

from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.matmul.fully_connected import FullyConnected

DEPTHS = (1, 3, 4, 5, 8, 11, 12, 16, 20, 23, 28, 31, 32, 44, 64, 131)
"""In whole words, from none to several of the turns of every loop; and beyond them."""
UNITS = (1, 2, 3, 4, 5, 7, 8, 11, 12, 16)


def layer(
    rows: int,
    depth: int,
    units: int,
    rng: np.random.Generator,
    *,
    per_unit: bool = False,
    activation: Activation = Activation.NONE,
    extreme: bool = False,
) -> Graph:
    """Weights above -128, so that any two units can be joined; `extreme`: of the largest magnitudes
    only, each with the sign that its unit's sums grow by."""
    data = rng.integers(-127, 128, (units, depth)).astype(np.int8)
    if extreme:
        data[:] = np.where(np.arange(units) % 3, 127, -127)[:, None]
    scales = tuple(float(0.01 * each) for each in rng.uniform(0.5, 1.0, units if per_unit else 1))
    bias = rng.integers(-20_000, 20_000, units).astype(np.int32)
    zeros = (0,) * len(scales)
    bias_q = Quantisation(tuple(0.05 * scale for scale in scales), zeros)
    x_q = Quantisation((0.05,), (int(rng.integers(-128, 128)),))
    y_q = Quantisation((0.04 * float(np.sqrt(depth)),), (int(rng.integers(-20, 20)),))
    tensors = [
        Tensor("x", (rows, depth), DType.INT8, x_q),
        Tensor("weights", data.shape, DType.INT8, Quantisation(scales, zeros), data),
        Tensor("bias", bias.shape, DType.INT32, bias_q, bias),
        Tensor("y", (rows, units), DType.INT8, y_q),
    ]
    names = ("x", "weights", "bias")
    op = Op("fully_connected", "op", names, ("y",), FullyConnected(activation))
    return Graph.build("dense", tensors, [op], ["x"], ["y"])


def layers(count: int, rng: np.random.Generator) -> list[Graph]:
    """So many at random, and two whose sums are the largest of their depth."""
    graphs = [
        layer(
            int(rng.choice((1, 1, 2, 3))),
            int(rng.choice(DEPTHS)),
            int(rng.choice(UNITS)),
            rng,
            per_unit=bool(rng.integers(3) == 0),
            activation=Activation.RELU if rng.integers(3) == 0 else Activation.NONE,
        )
        for _ in range(count)
    ]
    return [*graphs, *(layer(1, depth, 8, rng, extreme=True) for depth in (31, 128))]

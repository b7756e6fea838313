"""A network of float activations and int8 weights, as dynamic-range quantisation leaves one."""

from __future__ import annotations

import numpy as np

from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.activation import Activation
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.hybrid.convolutions import HybridConvolution
from toolchain.ops.hybrid.dense import HybridDense
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.pooling.common import Pool2D
from toolchain.ops.window import Padding


def hybrid_network() -> Graph:
    """Convolutions with a scale of each filter, and with one; dense layers of both kinds."""
    rng = np.random.default_rng(6)
    tensors = [Tensor("x", (1, 14, 14, 3), DType.FLOAT32)]
    ops: list[Op] = []

    def add(
        kind: str,
        attributes: Attributes,
        shape: tuple[int, ...],
        weights: tuple[int, ...] = (),
        axis: int = 0,
        scales: int = 0,
    ) -> None:
        number, inputs = len(ops), [tensors[-1].name if not ops else ops[-1].outputs[0]]
        if weights:
            units, count = weights[axis], scales or weights[axis]
            drawn = [float(np.float32(one)) for one in rng.uniform(0.002, 0.01, count)]
            own = (drawn[0],) * units if kind == "conv2d" and scales else tuple(drawn)
            q = Quantisation(own, (0,) * len(own), axis if len(own) > 1 else None)
            data = rng.integers(-127, 128, weights).astype(np.int8)
            bias = rng.normal(0, 0.1, units).astype(np.float32)
            tensors.append(Tensor(f"w{number}", weights, DType.INT8, q, data))
            tensors.append(Tensor(f"b{number}", (units,), DType.FLOAT32, None, bias))
            inputs += [f"w{number}", f"b{number}"]
        tensors.append(Tensor(f"y{number}", shape, DType.FLOAT32))
        ops.append(Op(kind, f"op{number}", tuple(inputs), (f"y{number}",), attributes))

    relu = Activation.RELU6
    first = HybridConvolution((2, 2), padding=Padding(0, 0, 1, 1), activation=relu)
    add("conv2d", first, (1, 7, 7, 10), (10, 3, 3, 3))
    around = HybridConvolution(padding=Padding(1, 1, 1, 1), activation=relu)
    add("depthwise_conv2d", around, (1, 7, 7, 10), (1, 3, 3, 10), axis=3)
    add("conv2d", HybridConvolution(range=Range.SYMMETRIC), (1, 7, 7, 12), (12, 1, 1, 10), scales=1)
    add("max_pool2d", Pool2D(2, 2, 2, 2), (1, 3, 3, 12))
    add("reshape", Reshape((1, 108)), (1, 108))
    add("fully_connected", HybridDense(Activation.RELU, range=Range.ASYMMETRIC), (1, 21), (21, 108))
    add("fully_connected", HybridDense(), (1, 7), (7, 21), scales=1)
    return Graph.build("hybrid", tensors, ops, ["x"], [ops[-1].outputs[0]])

"""Int16 activations with int8 weights (TFLite's 16x8 scheme): what its operators share.

All is symmetric: zero points are 0. Biases are int64. Arithmetic of sums: LiteRT's
`MultiplyByQuantizedMultiplier` on int64, which keeps 16 bits of the multiplier (CMSIS-NN's
`arm_nn_requantize_s64`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.fixed_point import Int32

WIDE = frozenset({DType.INT16})
LARGEST_SUM = 1 << 30
"""`arm_nn_requantize_s64` keeps twice the result in int32."""


def scale_sums(
    sums: NDArray[np.int64], multiplier: Int32 | int, shift: Int32 | int
) -> NDArray[np.int64]:
    """int64 sums times multiplier * 2**(shift - 31), halves up, by 16 bits of the multiplier."""
    whole = np.asarray(multiplier, dtype=np.int64)
    reduced = np.where(whole < 0x7FFF0000, (whole + (1 << 15)) >> 16, 0x7FFF)
    right = 15 - np.asarray(shift, dtype=np.int64)
    scaled: NDArray[np.int64] = (sums * reduced + (np.int64(1) << (right - 1))) >> right
    return scaled


def power_of_two(scale: float) -> int | None:
    """The exponent of a scale that LiteRT takes for a power of two (`CheckedLog2`)."""
    log = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
    nearest = np.round(log)
    return int(nearest) if abs(log - nearest) < np.float32(1e-3) else None


def check_sums(
    op: Op, weights: NDArray[np.int64], bias: NDArray[np.int64], factors: NDArray[np.float64]
) -> None:
    """Raise UnsupportedError where a sum (weights as [units, taps]) might overrun the kernels."""
    largest = 32768.0 * np.abs(weights).sum(axis=1) + np.abs(bias.astype(np.float64))
    if (largest * factors).max() >= LARGEST_SUM or factors.max() >= 1 << 14:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: its output scale is {factors.max():g} times too small for "
            "the sums it holds; quantise the model with a representative data set"
        )


def bias_of(op: Op, graph: Graph, index: int, units: int) -> NDArray[np.int64]:
    """The bias, or zeros: without one CMSIS-NN would scale in another way."""
    tensor = graph.input(op, index) if len(op.inputs) > index and op.inputs[index] else None
    if tensor is None:
        return np.zeros(units, np.int64)
    if tensor.constant is None:
        raise UnsupportedError(f"{op.kind} {op.name!r}: its bias is computed at run time")
    return tensor.constant.reshape(-1).astype(np.int64)


def widened(graph: Graph, finer: int = 256) -> Graph:
    """An int8 sample with int16 activations and biases to match; zero points are 0.

    `finer`: what operand scales are divided by; those of outputs are divided by 256.
    """
    tensors = [
        _widened(tensor, 256 if tensor.name in graph.outputs else finer)
        for tensor in graph.tensors.values()
    ]
    return Graph.build(graph.name, tensors, graph.ops, graph.inputs, graph.outputs)


def wide_sample(
    sample: Callable[[np.random.Generator], Graph], finer: int = 256
) -> Callable[[np.random.Generator], Graph]:
    """`widened` samples of an int8 kind."""
    return lambda rng: widened(sample(rng), finer)


def _widened(tensor: Tensor, finer: int) -> Tensor:
    bias = tensor.name == "bias"
    if tensor.dtype is DType.INT8 and tensor.name != "weights":
        scale = float(np.float32(tensor.q.scale / finer))
        data = tensor.constant
        if data is not None:
            data = data.astype(np.int16) * 256 + 77
        q = Quantisation((scale,), (0,))
        return replace(tensor, dtype=DType.INT16, quantisation=q, constant=data)
    if bias and tensor.constant is not None and tensor.quantisation is not None:
        scales = tuple(float(np.float32(scale / finer)) for scale in tensor.q.scales)
        q = replace(tensor.quantisation, scales=scales)
        data = tensor.constant.astype(np.int64) * 256 + 7
        return replace(tensor, dtype=DType.INT64, quantisation=q, constant=data)
    return tensor

"""Operators with an input, weights and a bias: their operands, and the terms that scales decide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType, Op, Tensor
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.fixed_point import Int32, wrap_int32
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.operator import AnyOperator
from toolchain.ops.spec import Array, Arrays, Inputs, TensorType, TensorTypes, TfliteNode

INPUT, WEIGHTS, BIAS = 0, 1, 2
_LEAST_SLOW = 0.5
"""From this factor on a sum takes no right shift (`arithmetic.packing.shift_code`)."""


def constant_of(tensor: Tensor) -> Array:
    """The data of a weight or bias tensor. Raises ValueError if the tensor is not constant."""
    if tensor.constant is None:
        raise ValueError(f"tensor {tensor.name!r} must be constant")
    return tensor.constant


def has_bias(op: Op | AnyOperator) -> bool:
    """Whether the operator has a bias."""
    return len(op.inputs) > BIAS and bool(op.inputs[BIAS])


def bias_of(op: AnyOperator, channels: int) -> Int32:
    """The bias as int32, one per channel; zeros if the operator has none."""
    if has_bias(op):
        return constant_of(op.input(BIAS)).reshape(-1).astype(np.int32)
    return np.zeros(channels, dtype=np.int32)


def sums_type(op: AnyOperator, index: int, shape: tuple[int, ...]) -> TensorTypes:
    """The type of int32 sums of a part of what an operator sums over. Raises ValueError unless the
    last input, at `index`, is '' or the sums of the parts before.
    """
    if len(op.inputs) != index + 1:
        raise ValueError(f"needs {index + 1} inputs: operands, and sums or ''")
    sums = op.inputs[index]
    if sums is not None and (sums.shape, sums.dtype) != (shape, DType.INT32):
        raise ValueError(f"{sums} cannot be added to int32{list(shape)}")
    return (TensorType(shape, DType.INT32),)


def added_sums(op: AnyOperator, total: NDArray[np.int64], inputs: Inputs) -> Arrays:
    """Sums of a part with what the inputs behind the operands add, if they are there. They wrap."""
    for x, values in zip(op.inputs[BIAS:], inputs[BIAS:], strict=True):
        if x is not None:
            total = total + values.astype(np.int64)
    return (wrap_int32(total).astype(np.int32),)


def present_inputs(node: TfliteNode) -> tuple[int, ...]:
    """The indices of input, weights and bias that the file's operator has."""
    return tuple(i for i, tensor in enumerate(node.inputs[:3]) if tensor is not None)


def is_narrow(op: AnyOperator) -> bool:
    """Whether the kernel clamps its outputs to less than the whole range of int8."""
    activation = getattr(op.attributes, "activation", Activation.NONE)
    return clamp_range(activation, op.y) != (-128, 127)


def slow_channels(op: AnyOperator, once: bool = False) -> tuple[str, NDArray[np.bool_]]:
    """The slow path's name, and a mask of the output channels that take it.

    A channel takes it if no quick right shift scales its sums: with TFLite's rounding if its factor
    is 0.5 or more (path "slow"), with ONNX's always (path "float"). With `once` the kernel has a
    quick ending for nearly all of those, too: one rounding or, in assembly, the FPU.
    """
    x, weights, y = op.x, op.input(1), op.y
    channels = y.shape[-1]
    if getattr(op.attributes, "rounding", Rounding.TFLITE) is Rounding.ONNX:
        return "float", np.full(channels, not once, np.bool_)
    factors = np.array(weights.q.scales) * (x.q.scale / y.q.scale)
    return "slow", np.broadcast_to(factors >= _LEAST_SLOW, channels)

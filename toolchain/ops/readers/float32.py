"""Parts of the float32 kinds. Their tensors are all float32 and have no quantisation.

References add in the order of LiteRT's reference kernels and round every operation to float32. The
C kernels do the same, so both agree bit for bit on every core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import BOUNDS, Activation
from toolchain.ops.arithmetic.float_math import Float32
from toolchain.ops.weighted import BIAS

Number = TypeVar("Number", np.float32, np.int64)
_LARGEST = float(np.finfo(np.float32).max)
F = TypeVar("F", bound=kit.Form[Any])


def range_of(activation: Activation) -> tuple[float, float]:
    """Least and greatest value of a fused activation (`CalculateActivationRange`)."""
    low, high = BOUNDS[activation]
    return max(low, -_LARGEST), min(high, _LARGEST)


def clamped(values: Float32, activation: Activation) -> Float32:
    """Values clamped to an activation's range (`ActivationFunctionWithMinMax`). NaN stays NaN; -0
    stays -0 if a bound is 0.
    """
    low, high = (np.float32(bound) for bound in range_of(activation))
    return clip(values, low, high)


def clip(values: Float32, low: np.float32, high: np.float32) -> Float32:
    """`std::min(std::max(values, low), high)`, for NaN and signed zeros, too."""
    raised = np.where(values < low, low, values)
    return np.where(high < raised, high, raised)


def larger(a: Float32, b: Float32 | np.float32) -> Float32:
    """`a > b ? a : b`, which is b if either is NaN, as in TFLite's MAXIMUM."""
    return np.where(a > b, a, b)


def extreme(rows: Float32, smallest: bool = False) -> Float32:
    """The largest (or smallest) value along the first axis. NaN is skipped, as in TFLite."""
    result = np.full(rows.shape[1:], _LARGEST if smallest else -_LARGEST, np.float32)
    for row in rows:
        result = smaller(row, result) if smallest else larger(row, result)
    return result


def smaller(a: Float32, b: Float32 | np.float32) -> Float32:
    """`a < b ? a : b`, which is b if either is NaN, as in TFLite's MINIMUM."""
    return np.where(a < b, a, b)


def check_float_node(node: kit.TfliteNode) -> None:
    """Raise UnsupportedError if an input of a TFLite operator is not float32."""
    for index, tensor in enumerate(node.inputs):
        if tensor is not None and tensor.dtype is not kit.DType.FLOAT32:
            raise node.unsupported(
                f"input {index} ({tensor.name!r}) is {tensor.dtype.value} beside float32",
                "quantise the model fully to int8, or not at all",
            )


def with_bias_and_activation(
    sums: Float32, op: kit.AnyOperator, inputs: Any, activation: Activation
) -> Float32:
    """Sums plus the bias, if the operator has one, clamped to the activation's range."""
    if op.given(BIAS) is not None:
        sums = sums + inputs[BIAS].reshape(-1)
    return clamped(sums, activation)


def float32_sample(
    sample: Callable[[np.random.Generator], kit.Graph], kind: str
) -> Callable[[np.random.Generator], kit.Graph]:
    """The samples of an int8 kind with float32 tensors. Constants are multiplied by
    a small scale.
    """

    def floated(tensor: kit.Tensor) -> kit.Tensor:
        data = tensor.constant
        if data is not None:
            spread = 1 / 64 if tensor.name == "weights" else 1 / 4096
            data = (data.astype(np.float32) * np.float32(spread)).astype(np.float32)
        return replace(tensor, dtype=kit.DType.FLOAT32, quantisation=None, constant=data)

    def made(rng: np.random.Generator) -> kit.Graph:
        graph = kit.with_tensors(sample(rng), floated)
        return replace(graph, ops=tuple(replace(op, kind=kind) for op in graph.ops))

    return made


def float32_elementwise_sample(
    sample: Callable[[np.random.Generator], kit.Graph],
) -> Callable[[np.random.Generator], kit.Graph]:
    """The samples of an elementwise int8 kind with float32 tensors. Constants are normally
    distributed.
    """

    def made(rng: np.random.Generator) -> kit.Graph:
        def real(tensor: kit.Tensor) -> kit.Tensor:
            data = None
            if tensor.is_constant:
                data = rng.normal(0, 2, tensor.shape).astype(np.float32)
            return replace(tensor, dtype=kit.DType.FLOAT32, quantisation=None, constant=data)

        return kit.with_tensors(sample(rng), real)

    return made


def float32_form(
    base: F,
    limits: str,
    reference: Callable[..., kit.Arrays],
    select: kit.Select,
) -> F:
    """The float32 form of an int8 kind `base`: another reference and other kernels.

    It has no ONNX reader, which reads float operators in its own way, and no reductions, whose
    sums would depend on the order of the parts.
    """
    return replace(
        base,
        reference=reference,
        select=select,
        sample=float32_sample(base.sample, base.kind),
        onnx=None,
        reductions=kit.no_reductions,
        dtype=kit.DType.FLOAT32,
        limits=limits,
    )

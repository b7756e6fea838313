"""Parts of the int16 kinds: int16 activations with int8 weights, TFLite's 16x8 scheme.

All zero points are 0, and biases are int64. Sums are scaled by LiteRT's
`MultiplyByQuantizedMultiplier` on int64 (`arithmetic.fixed_point.scale_sums`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit

_SUMS_IN_REFERENCE = 1 << 48
"""Sums times 16 bits of a factor are held in int64 by LiteRT's `MultiplyByQuantizedMultiplier`."""
_FACTORS_IN_REFERENCE = 2.0**14 * (1 - 2.0**-32)
"""From here on it would shift right by less than one bit: `1 << (total_shift - 1)` is undefined
(kernels/internal/common.cc:111). `QuantizeMultiplier` rounds the last of the factors below 2^14 up.
"""
_DOUBLED = 1 << 30
"""`arm_nn_requantize_s64` holds twice the scaled sum in int32."""
F = TypeVar("F", bound=kit.Form[Any])


def power_of_two(scale: float) -> int | None:
    """The exponent of a scale that LiteRT treats as a power of two (`CheckedLog2`); None for
    others.
    """
    log = np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2)))
    nearest = np.round(log)
    return int(nearest) if abs(log - nearest) < np.float32(1e-3) else None


def largest_sums(weights: NDArray[np.int64], bias: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest magnitude of each unit's sum. `weights` are [units, taps]."""
    largest: NDArray[np.float64] = 32768.0 * np.abs(weights).sum(axis=1)
    return largest + np.abs(bias.astype(np.float64))


def check_sums(
    op: kit.AnyOperator, largest: NDArray[np.float64] | float, factors: NDArray[np.float64] | float
) -> None:
    """Raise UnsupportedError where LiteRT's scaling of sums is undefined.

    Scaled sums that int32 does not hold wrap, in LiteRT and in Thimble's kernels.
    """
    if np.max(largest) >= _SUMS_IN_REFERENCE:
        raise op.refused(
            f"sums of up to {np.max(largest):.3g} overrun the int64 in "
            "which LiteRT scales them; quantise the model with a representative data set"
        )
    if np.max(factors) >= _FACTORS_IN_REFERENCE:
        raise op.refused(
            f"its output scale is {np.max(factors):g} times too small for "
            "the sums it holds, and LiteRT's scaling ends at 2**14; quantise the model with a "
            "representative data set"
        )


def held_by_cmsis_nn(largest: NDArray[np.float64], factors: NDArray[np.float64]) -> bool:
    """Whether CMSIS-NN's kernels hold every scaled sum."""
    return bool((largest * factors).max() < _DOUBLED)


def bias_of(op: kit.AnyOperator, index: int, units: int) -> NDArray[np.int64]:
    """The bias as int64; zeros if there is none, because CMSIS-NN scales differently without a
    bias.

    Raises UnsupportedError for a bias that is computed at run time.
    """
    tensor = op.given(index)
    if tensor is None:
        return np.zeros(units, np.int64)
    if tensor.constant is None:
        raise op.refused("its bias is computed at run time")
    return tensor.constant.reshape(-1).astype(np.int64)


def as_int16(graph: kit.Graph, finer: int = 256) -> kit.Graph:
    """An int8 sample with int16 activations and an int64 bias. Zero points become 0.

    The scales of outputs are divided by 256, those of operands by `finer`.
    """
    return kit.with_tensors(
        graph, lambda one: _as_int16(one, 256 if one.name in graph.outputs else finer)
    )


def int16_sample(
    sample: Callable[[np.random.Generator], kit.Graph], finer: int = 256
) -> Callable[[np.random.Generator], kit.Graph]:
    """The samples of an int8 kind, made int16 by `as_int16`."""
    return lambda rng: as_int16(sample(rng), finer)


def int16_form(base: F, limits: str, select: kit.Select | None = None) -> F:
    """The int16 form of an int8 kind `base`, which differs in its kernels alone.

    The reference and the shape rule of `base` must hold for int16, too. `select` chooses the kernel
    (by default as for int8). ONNX models have no int16 form, and sums over parts of the input are
    int32, so the form has neither an ONNX reader nor reductions.
    """
    return replace(
        base,
        select=select or base.select,
        sample=int16_sample(base.sample),
        onnx=None,
        reductions=kit.no_reductions,
        dtype=kit.DType.INT16,
        limits=limits,
    )


def _as_int16(tensor: kit.Tensor, finer: int) -> kit.Tensor:
    bias = tensor.name == "bias"
    if tensor.dtype is kit.DType.INT8 and tensor.name != "weights":
        scale = float(np.float32(tensor.q.scale / finer))
        data = tensor.constant
        if data is not None:
            data = data.astype(np.int16) * 256 + 77
        q = kit.Quantisation((scale,), (0,))
        return replace(tensor, dtype=kit.DType.INT16, quantisation=q, constant=data)
    if bias and tensor.constant is not None and tensor.quantisation is not None:
        scales = tuple(float(np.float32(scale / finer)) for scale in tensor.q.scales)
        q = replace(tensor.quantisation, scales=scales)
        data = tensor.constant.astype(np.int64) * 256 + 7
        return replace(tensor, dtype=kit.DType.INT64, quantisation=q, constant=data)
    return tensor

"""int32 sums of a convolution to int8, once: the end of a channel-wise partition.

Arithmetic: the tail of TFLite `reference_integer_ops::ConvPerChannel`,
MultiplyByQuantizedMultiplier, output zero point, activation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops._activation import Activation, clamp_range
from toolchain.ops._conv import requantise
from toolchain.ops._fixed_point import quantize_multiplier
from toolchain.ops.spec import Array, Constant, Lowering, OpSpec, SafeOverlap, TensorType

_SHIFT_BIAS = 64
"""THIMBLE_SHIFT_BIAS: the code of a shift in TFLite's two roundings."""


@dataclass(frozen=True)
class RequantiseSums(Attributes):
    """One multiplier and left shift for each channel, the last axis."""

    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    activation: Activation = Activation.NONE


def _attributes(op: Op) -> RequantiseSums:
    assert isinstance(op.attributes, RequantiseSums)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    sums, attributes = graph.input(op, 0), _attributes(op)
    if sums.dtype is not DType.INT32 or not sums.shape:
        raise ValueError(f"needs int32 sums, got {sums}")
    if not len(attributes.multipliers) == len(attributes.shifts) == sums.shape[-1]:
        raise ValueError(f"{len(attributes.multipliers)} multipliers for {sums}")
    return (TensorType(sums.shape, DType.INT8),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    y, attributes = graph.output(op), _attributes(op)
    multiplier = np.array(attributes.multipliers, dtype=np.int32)
    shift = np.array(attributes.shifts, dtype=np.int32)
    low, high = clamp_range(attributes.activation, y)
    return (requantise(inputs[0].astype(np.int64), multiplier, shift, y, low, high),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    y, attributes = graph.output(op), _attributes(op)
    codes = [shift - _SHIFT_BIAS for shift in attributes.shifts]
    pairs = [v for pair in zip(attributes.multipliers, codes, strict=True) for v in pair]
    low, high = clamp_range(attributes.activation, y)
    return Lowering(
        functions=("thimble_requantise_sums_s8",),
        constants=(
            Constant("parameters", np.array(pairs, dtype=np.int32), "multipliers, shift codes"),
        ),
        fields={
            "pixels": y.elements // y.shape[-1],
            "channels": y.shape[-1],
            "output_offset": y.q.zero_point,
            "activation_min": low,
            "activation_max": high,
        },
    )


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """One byte is written after every four that were read."""
    return (SafeOverlap(0),)


def _sample(rng: np.random.Generator) -> Graph:
    shape = (1, *(int(n) for n in rng.integers(1, 7, 3)))
    pairs = [quantize_multiplier(float(2.0 ** rng.uniform(-26, -20))) for _ in range(shape[3])]
    multipliers, shifts = zip(*pairs, strict=True)
    activation = rng.choice(np.array(list(Activation), dtype=object))
    q = Quantisation((0.0625,), (int(rng.integers(-128, 128)),))
    tensors = [Tensor("sums", shape, DType.INT32), Tensor("y", shape, DType.INT8, q)]
    attributes = RequantiseSums(multipliers, shifts, activation)
    op = Op("requantise_sums", "requantise", ("sums",), ("y",), attributes)
    return Graph.build("sample", tensors, [op], ["sums"], ["y"])


SPEC = OpSpec(
    kind="requantise_sums",
    attributes=RequantiseSums,
    infer=_infer,
    reference=_reference,
    lower=_lower,
    sample=_sample,
    overlaps=_overlaps,
    dtypes=frozenset({DType.INT8, DType.INT32}),
    made_by_passes=True,
    limits="int32 sums to int8, per channel; made by rewriting only",
)

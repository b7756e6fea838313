"""Fully connected layer of int16 activations with int8 weights. TFLite FULLY_CONNECTED, 16x8.

Arithmetic: LiteRT `reference_integer_ops::FullyConnected` with int64 sums, which it scales in
double precision and rounds once. CMSIS-NN keeps 16 bits of the factor, so the kernel is our own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.arithmetic.activation import clamp_range
from toolchain.ops.convolution.common import BIAS, INPUT, WEIGHTS
from toolchain.ops.matmul import fully_connected
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.readers.wide import WIDE, bias_of, wide_sample
from toolchain.ops.spec import Constant, Lowering, SafeOverlap, no_reductions


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    assert isinstance(op.attributes, FullyConnected)
    x, weights, y = graph.input(op, INPUT), graph.input(op, WEIGHTS), graph.output(op)
    units, depth = weights.shape
    low, high = clamp_range(op.attributes.activation, y)
    factors: NDArray[np.float64] = x.q.scale * np.array(weights.q.scales) / y.q.scale
    bias = bias_of(op, graph, BIAS, units)
    largest = depth * 2.0**22 + np.abs(bias.astype(np.float64))  # 16 bits times 8, for each input
    if (largest * factors).max() >= 2.0**31:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: the output scale {y.q.scale:g} is too fine; its values may "
            "not fit 32 bits, where the reference wraps"
        )
    return Lowering(
        functions=("thimble_fully_connected_s16", "thimble_dot_s16"),
        constants=(
            Constant("bias", bias, "int64"),
            Constant("factors", factors.view(np.int64), "bytes of doubles: scale of a sum"),
        ),
        fields={
            "rows": x.elements // depth,
            "depth": depth,
            "units": units,
            "per_channel": int(len(factors) > 1),
            "activation_min": low,
            "activation_max": high,
        },
    )


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    return ()


SPEC = replace(
    fully_connected.SPEC,
    kind="fully_connected_s16",
    lower=_lower,
    extents=product_extents.fully_connected_s16,
    overlaps=_overlaps,
    sample=wide_sample(fully_connected.SPEC.sample),
    onnx=None,
    reductions=no_reductions,
    dtypes=WIDE,
    limits="int16 with constant int8 weights and int64 bias",
)

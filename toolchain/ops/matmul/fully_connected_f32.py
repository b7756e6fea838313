"""Fully connected layer in float32. TFLite FULLY_CONNECTED, `reference_ops::FullyConnected`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.convolution.common import INPUT, WEIGHTS, Window
from toolchain.ops.matmul import fully_connected
from toolchain.ops.matmul.fully_connected import FullyConnected
from toolchain.ops.readers.floats import FLOAT, conv_fields, finished, float_sample, no_overlaps
from toolchain.ops.spec import Array, Lowering, no_reductions


def _attributes(op: Op) -> FullyConnected:
    assert isinstance(op.attributes, FullyConnected)
    return op.attributes


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    units, depth = graph.input(op, WEIGHTS).shape
    x, filters = (inputs[i].astype(np.float32) for i in (INPUT, WEIGHTS))
    rows = x.reshape(-1, depth)
    sums = np.zeros((len(rows), units), np.float32)
    for index in range(depth):
        sums = sums + rows[:, index, None] * filters[:, index]
    y = graph.output(op)
    return (finished(sums, op, inputs, _attributes(op).activation).reshape(y.shape),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    """A convolution of one line of pixels, a row of inputs each."""
    units, depth = graph.input(op, WEIGHTS).shape
    rows = graph.input(op, INPUT).elements // depth
    activation = _attributes(op).activation
    fields = conv_fields(op, (1, 1, rows, depth), (1, 1, rows, units), Window((1, 1)), activation)
    return Lowering(functions=("thimble_convolve_f32",), fields=fields)


SPEC = replace(
    fully_connected.SPEC,
    kind="fully_connected_f32",
    reference=_reference,
    lower=_lower,
    extents=product_extents.window_f32("ordinary"),
    overlaps=no_overlaps,
    sample=float_sample(fully_connected.SPEC.sample, "fully_connected_f32"),
    onnx=None,
    reductions=no_reductions,
    dtypes=FLOAT,
    limits="float32, constant weights",
)

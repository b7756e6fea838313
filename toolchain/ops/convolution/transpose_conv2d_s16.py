"""Transposed convolution of int16 with int8 filters. TFLite TRANSPOSE_CONV, 16x8:
`reference_integer_ops::TransposeConv` with int64 sums."""

from __future__ import annotations

from dataclasses import replace

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.convolution import transpose_conv2d
from toolchain.ops.convolution.transpose_conv2d import TransposeConv2D, forward_window
from toolchain.ops.convolution.wide_conv import lower_transpose_conv2d
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.spec import Lowering, SafeOverlap


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    assert isinstance(op.attributes, TransposeConv2D)
    return lower_transpose_conv2d(op, graph, forward_window(op, graph), op.attributes.activation)


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """None: every channel of a pixel reads the image again."""
    return ()


SPEC = replace(
    transpose_conv2d.SPEC,
    kind="transpose_conv2d_s16",
    lower=_lower,
    extents=product_extents.wide_own,
    overlaps=_overlaps,
    sample=wide_sample(transpose_conv2d.SPEC.sample),
    onnx=None,
    dtypes=WIDE,
    limits="int16 with constant int8 weights and int64 bias; any stride and output size",
)

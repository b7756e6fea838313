"""Transposed convolution of int16 with int8 filters. TFLite TRANSPOSE_CONV, 16x8:
`reference_integer_ops::TransposeConv` with int64 sums."""

from __future__ import annotations

from dataclasses import replace

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.convolution.transpose_conv2d_s8 import S8, forward_window, transposed_of
from toolchain.ops.convolution.wide_kernels import own_kernel
from toolchain.ops.kernel import Kernel
from toolchain.ops.readers.wide import WIDE, wide_sample


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    window, activation = forward_window(op, graph), transposed_of(op).activation
    return own_kernel(op, graph, "thimble_transpose_conv_s16", window, activation)


S16 = replace(
    S8,
    select=_select,
    sample=wide_sample(S8.sample),
    onnx=None,
    dtypes=WIDE,
    limits="int16 with constant int8 weights and int64 bias; any stride and output size",
)

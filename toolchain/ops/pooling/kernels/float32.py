"""What Thimble's kernels of float32 pools share."""

from __future__ import annotations

from toolchain.ir import Graph, Op
from toolchain.ops.convolution.window_f32 import image_f32, reach_f32, window_f32
from toolchain.ops.extents import Extents
from toolchain.ops.kernel import Call, Input, Kernel, Output, Touched
from toolchain.ops.pooling.common import pool_attributes, pool_window
from toolchain.ops.pooling.kernels.windows import pool_overlaps


def float_pool_kernel(op: Op, graph: Graph, function: str) -> Kernel:
    """A call of `function`."""
    x, y, activation = graph.input(op, 0), graph.output(op), pool_attributes(op).activation
    window = window_f32(x.shape, y.shape, pool_window(op), activation)
    call = Call(function, {"window": window, "input": Input(0), "output": Output(0)})
    return Kernel(
        (call,), _extents, find_overlaps=lambda: pool_overlaps(op, graph, reads_first=True)
    )


def _extents(touched: Touched) -> Extents:
    call = touched.call
    return Extents(
        {0: image_f32(call, "input")}, {0: image_f32(call, "output")}, largest=reach_f32(call)
    )

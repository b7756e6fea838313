"""Parts of Thimble's kernels of float32 pools."""

from __future__ import annotations

from toolchain.ops import kit
from toolchain.ops.convolution.window_f32 import image_f32, reach_f32, window_f32
from toolchain.ops.pooling.common import Pool2D, pool_window
from toolchain.ops.pooling.kernels.windows import pool_overlaps


def float_pool_kernel(op: kit.Operator[Pool2D], function: str) -> kit.Kernel:
    """A call of `function`."""
    x, y, activation = op.x, op.y, op.attributes.activation
    window = window_f32(x.shape, y.shape, pool_window(op), activation)
    call = kit.Call(function, {"window": window, "input": kit.Input(0), "output": kit.Output(0)})
    return kit.Kernel((call,), _extents, find_overlaps=lambda: pool_overlaps(op, reads_first=True))


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    return kit.Extents(
        {0: image_f32(call, "input")}, {0: image_f32(call, "output")}, largest=reach_f32(call)
    )

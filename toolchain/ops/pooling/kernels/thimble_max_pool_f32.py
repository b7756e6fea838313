"""`thimble_max_pool_f32`, `thimble_average_pool_f32` and `thimble_l2_pool_f32`: maxima, averages
and roots of mean squares of float32.
"""

from __future__ import annotations

from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.convolution.window_f32 import image_f32, window_f32
from toolchain.ops.pooling.common import Pool2D, pool_window
from toolchain.ops.pooling.kernels.windows import Counts, pool_overlaps, pool_terms

FUNCTIONS = MappingProxyType(
    {
        "max_pool2d": "thimble_max_pool_f32",
        "average_pool2d": "thimble_average_pool_f32",
        "l2_pool2d": "thimble_l2_pool_f32",
    }
)
"""By the kind."""


def kernel(op: kit.Operator[Pool2D], core: kit.Core) -> kit.Kernel:
    """The kernel of any pool of float32."""
    window = window_f32(op.x.shape, op.y.shape, pool_window(op), op.attributes.activation)
    call = kit.Call(
        FUNCTIONS[op.kind], {"window": window, "input": kit.Input(0), "output": kit.Output(0)}
    )
    return kit.Kernel(
        (call,),
        _extents,
        find_overlaps=lambda: pool_overlaps(op, reads_first=True),
        find_terms=lambda: pool_terms(op, _by_channels),
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    read, written = (image_f32(call, image) for image in ("input", "output"))
    return kit.Extents({0: read}, {0: written}, largest=kit.reach_in(call, "window"))


def _by_channels(channels: int, pixels: float, lines: int, taps: int) -> Counts:
    """Each channel of each pixel walks its window apart."""
    counts = {"channel": pixels, "line channel": lines, "tap channel": taps}
    return {name: count * channels for name, count in counts.items()}

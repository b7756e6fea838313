"""Instructions of Thimble's convolution kernels on cores with the DSP extension.

What blocks of rows cost beside their multiply-accumulates shows in terms of their own: input that
two blocks both read, rows begun, channels set up, calls. Non-negative least squares of 546
convolutions and 200 depthwise ones, whole and split, of five models in QEMU (mps2-an386): mean
error 3% (1x1), 3% (larger windows) and 8% (depthwise).
"""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import spec_of


def window_count(op: Op, graph: Graph, core: Core) -> float | None:
    """Instructions of a conv2d or depthwise_conv2d; None for what the formulas do not cover."""
    if not core.dsp or core.mve or op.kind not in ("conv2d", "depthwise_conv2d"):
        return None
    x, weights, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    macs = spec_of(op.kind).macs(op, graph)
    if op.kind == "depthwise_conv2d":
        _, height, _, channels = y.shape
        return 2.81 * macs + 4.41 * x.elements + (99.8 * height + 192) * channels
    if weights.shape[1:3] == (1, 1):
        return 0.94 * macs + 15.3 * y.elements + 1.95 * x.elements + 620
    return 0.81 * macs + 37.7 * y.elements + 3.44 * x.elements + 3415

"""Instructions of the kernels that sum in parts, on cores with the DSP extension, Helium or not.

Least squares of the relative error over 45 1x1 and 36 3x3 convolutions, 16 fully connected layers,
27 sums and 12 endings, counted in QEMU (mps2-an500; mps3-an547 differs by 2% at most). Mean error
3% (1x1), 5% (3x3), 5% (fully connected), 4% (sums) and 2% (endings).
"""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import spec_of


def sums_count(op: Op, graph: Graph, core: Core) -> float | None:
    """Instructions of an operator that makes or ends int32 sums; None for any other."""
    if not core.dsp or not op.inputs:
        return None
    x, y = graph.input(op, 0), graph.output(op)
    macs = spec_of(op.kind).macs(op, graph)
    match op.kind:
        case "partial_conv2d" if graph.input(op, 1).shape[1:3] == (1, 1):
            return 0.82 * macs + 13.3 * y.elements + 2.7 * x.elements + 227
        case "partial_conv2d":
            return 0.76 * macs + 24.0 * y.elements + 35.9 * x.elements + 2204
        case "partial_fully_connected":
            return 1.36 * macs + 21.6 * y.elements + 41
        case "partial_sum":
            return 1.85 * x.elements + 31.5 * y.elements + 45
        case "requantise_sums":
            return 27.1 * y.elements + 47
    return None

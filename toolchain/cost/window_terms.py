"""How often the loops of the pooling kernels turn; what other formulas share is in `ops.terms`."""

from __future__ import annotations

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops.pooling.common import pool_attributes
from toolchain.ops.terms import along
from toolchain.ops.terms import is_narrow as is_narrow
from toolchain.ops.terms import slow_channels as slow_channels

Terms = dict[str, float]


def pool_terms(op: Op, graph: Graph, core: Core) -> tuple[str, Terms]:
    """Kernel and terms of the int8 poolings."""
    attributes = pool_attributes(op)
    x, y = graph.input(op, 0), graph.output(op)
    batches, out_h, out_w, channels = y.shape
    top, _, left, _ = attributes.padding
    height, width = attributes.filter_height, attributes.filter_width
    rows = along(x.shape[1], out_h, height, attributes.stride_height, 1, top, 0)
    columns = along(x.shape[2], out_w, width, attributes.stride_width, 1, left, 0)
    pixels = batches * out_h * out_w
    lines = batches * rows.taps * out_w
    taps = batches * rows.taps * columns.taps
    sixteens, fours, rest = channels // 16, channels % 16 // 4, channels % 4
    terms: Terms = {"call": 1.0, "row": batches * out_h, "pixel": pixels}
    if op.kind == "max_pool2d":
        kernel = "arm_max_pool_s8" if core.mve else "thimble_max_pool_s8"
        if core.mve:
            vectors = -(-channels // 16)
            terms |= {"line": lines, "tap": taps, "first vector": pixels * vectors}
            terms |= {"vector": (taps - pixels) * vectors, "clamped": -(-pixels * channels // 16)}
            return kernel, terms
        terms |= {
            "sixteen": pixels * sixteens,
            "sixteen row": lines * sixteens,
            "sixteen tap": taps * sixteens,
            "four": pixels * fours,
            "four row": lines * fours,
            "four tap": taps * fours,
        }
    else:
        lifted = attributes.lift or not core.mve
        kernel = "thimble_average_pool_s8" if lifted else "arm_avgpool_s8"
        if not lifted:
            vectors = -(-channels // 16)
            terms |= {"vector": pixels * vectors, "line": lines * vectors, "tap": taps * vectors}
            return kernel, terms
        fours = channels // 4
        terms |= {
            "four": pixels * fours,
            "four row": lines * fours,
            "four tap": taps * fours,
            "lone group": pixels * bool(rest),
        }
    return kernel, terms | {
        "lone": pixels * rest,
        "lone row": lines * rest,
        "lone tap": taps * rest,
    }

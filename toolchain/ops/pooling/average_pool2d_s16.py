"""Average over windows of int16 images. TFLite AVERAGE_POOL_2D, `reference_integer_ops`."""

from __future__ import annotations

from dataclasses import replace

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.pooling import average_pool2d
from toolchain.ops.pooling.common import lower_pool, pool_lead_bytes
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.spec import Lowering, SafeOverlap, no_reductions


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    """Scratch as `arm_avgpool_s16_get_buffer_size` gives it."""
    sums = core.dsp and not core.mve
    return lower_pool(op, graph, "arm_avgpool_s16", 4 * graph.output(op).shape[3] if sums else 0)


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """The kernel sums a window before it writes the average."""
    return (SafeOverlap(0, 0, pool_lead_bytes(op, graph, reads_first=True)),)


SPEC = replace(
    average_pool2d.SPEC,
    kind="average_pool2d_s16",
    lower=_lower,
    extents=product_extents.pool,
    overlaps=_overlaps,
    sample=wide_sample(average_pool2d.SPEC.sample),
    onnx=None,
    reductions=no_reductions,
    dtypes=WIDE,
    limits="int16, NHWC; padding is not counted",
)

"""Maximum over windows of int16 images. TFLite MAX_POOL_2D, `reference_integer_ops`."""

from __future__ import annotations

from dataclasses import replace

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import product_extents
from toolchain.ops.pooling import max_pool2d
from toolchain.ops.pooling.common import lower_pool, pool_lead_bytes
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.spec import Lowering, SafeOverlap


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    return lower_pool(op, graph, "arm_max_pool_s16")


def _overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """CMSIS-NN keeps its running maximum in the output pixel."""
    return (SafeOverlap(0, 0, pool_lead_bytes(op, graph, reads_first=False)),)


SPEC = replace(
    max_pool2d.SPEC,
    kind="max_pool2d_s16",
    lower=_lower,
    extents=product_extents.pool,
    overlaps=_overlaps,
    sample=wide_sample(max_pool2d.SPEC.sample),
    onnx=None,
    dtypes=WIDE,
    limits="int16, NHWC",
)

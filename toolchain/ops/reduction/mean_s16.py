"""Mean of int16 over any axes. TFLite MEAN, `reference_ops::QuantizedMeanOrSum`."""

from __future__ import annotations

from dataclasses import replace

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import extents
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.reduction import mean
from toolchain.ops.reduction.common import lower_wide_reduction
from toolchain.ops.spec import Lowering, no_reductions


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    return lower_wide_reduction(op, graph, mean=True)


SPEC = replace(
    mean.SPEC,
    kind="mean_s16",
    lower=_lower,
    extents=extents.reduction(2, 2),
    sample=wide_sample(mean.SPEC.sample),
    onnx=None,
    reductions=no_reductions,
    dtypes=WIDE,
    limits="int16; constant axes in at most two groups of neighbours",
)

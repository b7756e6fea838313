"""Natural logarithm; the lowest output where there is none. TFLite LOG, int16."""

from __future__ import annotations

import numpy as np

from toolchain.ir import Graph, Op
from toolchain.ops.unary import log
from toolchain.ops.unary.float_table import Float32
from toolchain.ops.unary.float_table_s16 import float_table_s16_spec


def _transform(op: Op, graph: Graph, x: Float32) -> Float32:
    lowest = np.float32(graph.output(op).q.scale) * np.float32(-32768)
    return np.where(x > 0, log.log_float32(x), lowest).astype(np.float32)


SPEC = float_table_s16_spec(log.SPEC, _transform)

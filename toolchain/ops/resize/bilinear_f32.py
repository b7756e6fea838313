"""Resize by bilinear interpolation in float32. TFLite RESIZE_BILINEAR, `ResizeBilinear`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops.kernel import Kernel
from toolchain.ops.readers.float32 import float32_sample
from toolchain.ops.resize.bilinear import INT8, float_kernel, infer_bilinear, interpolated
from toolchain.ops.spec import Array


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (interpolated(op, graph, inputs[0].astype(np.float32)),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return float_kernel(op, graph, "thimble_resize_bilinear_f32")


FLOAT32 = replace(
    INT8,
    infer=infer_bilinear,
    reference=_reference,
    select=_select,
    sample=float32_sample(INT8.sample, INT8.kind),
    dtype=DType.FLOAT32,
)

"""Resize by bilinear interpolation in float32. TFLite RESIZE_BILINEAR, `ResizeBilinear`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ops import extents
from toolchain.ops.readers.floats import FLOAT, float_sample, no_overlaps
from toolchain.ops.resize import resize_bilinear
from toolchain.ops.resize.resize_bilinear import float_fields, infer_bilinear, interpolated
from toolchain.ops.spec import Array, Lowering, no_reductions


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (interpolated(op, graph, inputs[0].astype(np.float32)),)


def _lower(op: Op, graph: Graph, core: Core) -> Lowering:
    return Lowering(functions=("thimble_resize_bilinear_f32",), fields=float_fields(op, graph))


SPEC = replace(
    resize_bilinear.SPEC,
    kind="resize_bilinear_f32",
    infer=infer_bilinear,
    reference=_reference,
    lower=_lower,
    extents=extents.resize_float(4),
    overlaps=no_overlaps,
    sample=float_sample(resize_bilinear.SPEC.sample, "resize_bilinear_f32"),
    reductions=no_reductions,
    dtypes=FLOAT,
    limits="float32, NHWC; the size is constant",
)

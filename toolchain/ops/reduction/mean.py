"""Mean over any axes. TFLite MEAN; int8 and int16 as `reference_ops::QuantizedMeanOrSum`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from toolchain.boards import Core
from toolchain.ir import DType, Graph, Op
from toolchain.ops.kernel import Kernel
from toolchain.ops.readers.floats import FLOAT
from toolchain.ops.readers.onnx_pooling import read_mean
from toolchain.ops.readers.wide import WIDE, wide_sample
from toolchain.ops.reduction.common import (
    Reduce,
    infer_reduction,
    read_reduction,
    reduction_axes,
    reduction_reductions,
    reduction_reference,
    sample_reduction,
    write_reduction,
)
from toolchain.ops.reduction.floats import float_reduction_sample, sum_of_floats
from toolchain.ops.reduction.kernels import float_kernel, sum_kernel, wide_sum_kernel
from toolchain.ops.spec import (
    Array,
    OnnxBinding,
    OpSpec,
    TfliteBinding,
    by_type,
    no_reductions,
)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    return reduction_reference(op, graph, inputs, mean=True)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    return sum_kernel(op, graph, mean=True)


def _select_wide(op: Op, graph: Graph, core: Core) -> Kernel:
    return wide_sum_kernel(op, graph, mean=True)


_INT8 = OpSpec(
    kind="mean",
    attributes=Reduce,
    infer=infer_reduction,
    reference=_reference,
    select=_select,
    sample=lambda rng: sample_reduction(rng, "mean"),
    tflite=TfliteBinding(
        ("MEAN",), read_reduction, lambda op, graph: write_reduction(op, graph, "MEAN")
    ),
    axes=reduction_axes,
    reductions=lambda op, graph: reduction_reductions(op, graph, mean=True),
    onnx=OnnxBinding(("GlobalAveragePool", "ReduceMean"), read_mean),
    limits="int8; constant axes in at most two groups of neighbours",
)
_INT16 = replace(
    _INT8,
    select=_select_wide,
    sample=wide_sample(_INT8.sample),
    onnx=None,
    reductions=no_reductions,
    dtypes=WIDE,
    limits="int16; constant axes in at most two groups of neighbours",
)
_FLOAT32 = replace(
    _INT16,
    reference=lambda op, graph, inputs: sum_of_floats(op, graph, inputs, mean=True),
    select=float_kernel("mean"),
    sample=lambda rng: float_reduction_sample(rng, "mean", Reduce),
    dtypes=FLOAT,
    limits="float32; constant axes in at most two groups of neighbours",
)
SPEC = by_type({DType.INT8: _INT8, DType.INT16: _INT16, DType.FLOAT32: _FLOAT32})

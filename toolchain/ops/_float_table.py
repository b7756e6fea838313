"""Int8 functions that TFLite evaluates in float32 once, into a table (`LUTPopulate`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation
from toolchain.ops._axes import elementwise_axes
from toolchain.ops._elementwise import (
    Int64,
    check_node,
    infer_unary,
    lower_unary,
    overlaps_same_shape,
    reference_unary,
    require_types,
    sample_unary,
)
from toolchain.ops.spec import (
    Array,
    Lowering,
    OpSpec,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

Float32 = NDArray[np.float32]


def float_table_spec(
    kind: str,
    transform: Callable[[Float32], Float32],
    sample_output: Callable[[np.random.Generator], Quantisation],
    output_scale: float | None = None,
) -> OpSpec:
    """The spec of an int8 function `transform` of the real value.

    `output_scale`, where given, is the only one that TFLite accepts.
    """

    def apply(op: Op, graph: Graph, stored: Int64) -> Int64:
        x, y = graph.input(op, 0).q, graph.output(op).q
        with np.errstate(all="ignore"):
            real = np.float32(x.scale) * (stored - x.zero_point).astype(np.float32)
            scaled = transform(real) * (np.float32(1) / np.float32(y.scale))
        wide = np.nan_to_num(scaled.astype(np.float64))
        rounded = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
        clamped: Int64 = np.clip(rounded + y.zero_point, -128, 127).astype(np.int64)
        return clamped

    def reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
        return reference_unary(op, graph, inputs, lambda stored: apply(op, graph, stored))

    def lower(op: Op, graph: Graph, core: Core) -> Lowering:
        require_types(op, graph, DType.INT8)
        scale = graph.output(op).q.scale
        if output_scale is not None and scale != output_scale:
            raise UnsupportedError(
                f"{kind} {op.name!r}: the output scale is {scale:g}, TFLite's kernels need "
                f"{output_scale:g}; convert with TFLite's int8 quantiser"
            )
        return lower_unary(op, graph, lambda stored: apply(op, graph, stored))

    def read(node: TfliteNode) -> ReadOp:
        check_node(node, DType.INT8)
        return ReadOp(Attributes(), (0,))

    def write(op: Op, graph: Graph) -> WrittenOp:
        return WrittenOp(kind.upper(), version=2)

    def sample(rng: np.random.Generator) -> Graph:
        return sample_unary(rng, Op(kind, kind, ("x",), ("y",)), sample_output(rng))

    return OpSpec(
        kind=kind,
        attributes=Attributes,
        infer=infer_unary,
        reference=reference,
        lower=lower,
        sample=sample,
        overlaps=overlaps_same_shape,
        axes=elementwise_axes,
        tflite=TfliteBinding((kind.upper(),), read, write),
        limits="int8" if output_scale is None else f"int8, output scale 1/{1 / output_scale:.0f}",
    )

"""Products over any axes. TFLite REDUCE_PROD, ONNX ReduceProd.

int8 and int16: `QuantizedReduceProd`. Each factor is scaled by the input's scale over the n-th root
of the output's, for n factors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import DType, Graph, Op, Quantisation
from toolchain.ops.arithmetic.fixed_point import quantize_multiplier, scale_sums, wrap_int32
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import Call, Input, Kernel, Output, Struct
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.readers.onnx_pooling import read_reduction_of
from toolchain.ops.reduction.common import (
    Reduce,
    infer_reduction,
    read_reduction,
    reduced_axes,
    reduction_axes,
    sample_reduction,
    write_reduction,
)
from toolchain.ops.reduction.common_f32 import float_reduction_sample, rows_of_floats
from toolchain.ops.reduction.kernels import float_kernel, in_place, reduce_extents, shape_of
from toolchain.ops.reduction.plain import integer_forms
from toolchain.ops.spec import (
    Array,
    OnnxBinding,
    OnnxNode,
    ReadOp,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)

_AXES = "constant axes in at most two groups of neighbours"
_MOST_SHIFT = 14
"""Of a multiplier for 64-bit products: LiteRT shifts right by 15 less this, and adds a half."""


def _reference_float(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Multiplied in row-major order."""
    total = np.ones(graph.output(op).elements, np.float32)
    with np.errstate(all="ignore"):
        for row in rows_of_floats(op, graph, inputs):
            total = total * row
    return (total.reshape(graph.output(op).shape),)


def _factors(op: Op, graph: Graph) -> int:
    x = graph.input(op, 0)
    return math.prod(x.shape[axis] for axis in reduced_axes(op, graph))


def _scaling(op: Op, graph: Graph) -> tuple[int, int]:
    """Multiplier (Q0.31) and left shift of each factor."""
    x, y = graph.input(op, 0), graph.output(op)
    multiplier, shift = quantize_multiplier(x.q.scale / y.q.scale ** (1 / _factors(op, graph)))
    if shift > _MOST_SHIFT:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: the scales {x.q.scale:g} and {y.q.scale:g} of "
            f"{_factors(op, graph)} factors lie so far apart that TFLite shifts by a negative "
            "number, which C leaves undefined; requantise the model with a representative data set"
        )
    return multiplier, shift


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, y, scaling = graph.input(op, 0), graph.output(op), _scaling(op, graph)
    axes, centred = reduced_axes(op, graph), inputs[0].astype(np.int64) - x.q.zero_point
    kept = [axis for axis in range(centred.ndim) if axis not in axes]
    first, *rest = centred.transpose(*axes, *kept).reshape(-1, y.elements)
    product = first
    for factor in rest:
        product = scale_sums(product * factor, *scaling)
    scaled = wrap_int32(scale_sums(product, *scaling) + y.q.zero_point)
    info = np.iinfo(y.dtype.value)
    return (np.clip(scaled, info.min, info.max).astype(y.dtype.numpy).reshape(y.shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    x, y = graph.input(op, 0), graph.output(op)
    multiplier, shift = _scaling(op, graph)
    reduced = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    params = Struct(
        "thimble_reduce_prod_params",
        {
            "shape": Struct("thimble_reduce_shape", shape_of(op, graph)),
            "input_offset": x.q.zero_point,
            "output_offset": y.q.zero_point,
            "multiplier": reduced,
            "shift": shift,
        },
    )
    function = f"thimble_reduce_prod_s{8 * y.dtype.size_bytes}"
    call = Call(function, {"params": params, "input": Input(0), "output": Output(0)})
    return Kernel((call,), reduce_extents("params.shape"), find_overlaps=in_place)


def _read(node: TfliteNode) -> ReadOp:
    if node.legacy:
        raise node.unsupported(
            "TFLite has no REDUCE_PROD of legacy uint8",
            "convert with int8 tensors",
        )
    return read_reduction(node)


def _write(op: Op, graph: Graph) -> WrittenOp:
    return write_reduction(op, graph, "REDUCE_PROD")


def _sample(rng: np.random.Generator) -> Graph:
    """The output's scale is near that of typical products of a few factors."""
    while True:
        graph = sample_reduction(rng, "reduce_prod")
        (op,), x = graph.ops, graph.tensors["x"]
        factors = _factors(op, graph)
        log = math.log2(x.q.scale * 2.0 ** rng.uniform(4, 6)) * factors - 5
        if abs(log) < 100:
            break
    y = graph.tensors["y"]
    q = Quantisation((float(np.float32(2.0**log)),), (y.q.zero_point,))
    return Graph.build("sample", [x, replace(y, quantisation=q)], [op], ["x"], ["y"])


def _sample_float(rng: np.random.Generator) -> Graph:
    return float_reduction_sample(rng, "reduce_prod", Reduce)


def _read_onnx(node: OnnxNode) -> None:
    if not node.in_float:
        raise node.left_in_float("it has no int8 form")
    read_reduction_of("reduce_prod")(node)


_INT8 = OldForm(
    kind="reduce_prod",
    attributes=Reduce,
    infer=infer_reduction,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=TfliteBinding(("REDUCE_PROD",), _read, _write),
    axes=reduction_axes,
    onnx=OnnxBinding(("ReduceProd",), _read_onnx),
    dtype=DType.INT8,
    limits=f"int8; {_AXES}",
)
_INT16 = int16_form(_INT8, f"int16; {_AXES}")
_FLOAT32 = replace(
    _INT16,
    reference=_reference_float,
    select=float_kernel("product"),
    sample=_sample_float,
    dtype=DType.FLOAT32,
    limits=f"float32; {_AXES}",
)
SPEC = OpSpec(
    (_INT8, _INT16, _FLOAT32, *integer_forms(_FLOAT32, lambda op: "product", limits=_AXES))
)

"""Products over any axes. TFLite REDUCE_PROD, ONNX ReduceProd.

int8 and int16: `QuantizedReduceProd`. Each factor is scaled by the input's scale over the n-th root
of the output's, for n factors.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import scale_sums
from toolchain.ops.readers.int16 import int16_form
from toolchain.ops.readers.onnx_pooling import read_reduction_of
from toolchain.ops.reduction import common
from toolchain.ops.reduction.common import Reduce
from toolchain.ops.reduction.common_f32 import float_reduction_sample, rows_of_floats
from toolchain.ops.reduction.kernels import float_kernel, in_place, reduce_extents, shape_of
from toolchain.ops.reduction.plain import integer_forms

_AXES = "constant axes in at most two groups of neighbours"
_MOST_SHIFT = 14
"""The most shift of a multiplier for 64-bit products: LiteRT shifts right by 15 less this, and adds
a half."""


def _reference_float(op: kit.Operator[Reduce], inputs: kit.Inputs) -> kit.Arrays:
    """Multiplied in row-major order."""
    total = np.ones(op.y.elements, np.float32)
    with np.errstate(all="ignore"):
        for row in rows_of_floats(op, inputs):
            total = total * row
    return (total.reshape(op.y.shape),)


def _factors(op: kit.Operator[Reduce]) -> int:
    x = op.x
    return math.prod(x.shape[axis] for axis in common.reduced_axes(op))


def _scaling(op: kit.Operator[Reduce]) -> tuple[int, int]:
    """Multiplier (Q0.31) and left shift of each factor."""
    x, y = op.x, op.y
    multiplier, shift = kit.quantize_multiplier(x.q.scale / y.q.scale ** (1 / _factors(op)))
    if shift > _MOST_SHIFT:
        raise op.refused(
            f"the scales {x.q.scale:g} and {y.q.scale:g} of "
            f"{_factors(op)} factors lie so far apart that TFLite shifts by a negative "
            "number, which C leaves undefined; requantise the model with a representative data set"
        )
    return multiplier, shift


def _reference(op: kit.Operator[Reduce], inputs: kit.Inputs) -> kit.Arrays:
    x, y, scaling = op.x, op.y, _scaling(op)
    axes, centred = common.reduced_axes(op), inputs[0].astype(np.int64) - x.q.zero_point
    kept = [axis for axis in range(centred.ndim) if axis not in axes]
    first, *rest = centred.transpose(*axes, *kept).reshape(-1, y.elements)
    product = first
    for factor in rest:
        product = scale_sums(product * factor, *scaling)
    scaled = kit.wrap_int32(scale_sums(product, *scaling) + y.q.zero_point)
    info = np.iinfo(y.dtype.value)
    return (np.clip(scaled, info.min, info.max).astype(y.dtype.numpy).reshape(y.shape),)


def _select(op: kit.Operator[Reduce], core: kit.Core) -> kit.Kernel:
    x, y = op.x, op.y
    multiplier, shift = _scaling(op)
    reduced = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
    params = kit.Struct(
        "thimble_reduce_prod_params",
        {
            "shape": kit.Struct("thimble_reduce_shape", shape_of(op)),
            "input_offset": x.q.zero_point,
            "output_offset": y.q.zero_point,
            "multiplier": reduced,
            "shift": shift,
        },
    )
    function = f"thimble_reduce_prod_s{8 * y.dtype.size_bytes}"
    call = kit.Call(function, {"params": params, "input": kit.Input(0), "output": kit.Output(0)})
    return kit.Kernel((call,), reduce_extents("params.shape"), find_overlaps=in_place)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    if node.legacy:
        raise node.unsupported(
            "TFLite has no REDUCE_PROD of legacy uint8",
            "convert with int8 tensors",
        )
    return common.read_reduction(node)


def _write(op: kit.Operator[Reduce]) -> kit.WrittenOp:
    return common.write_reduction(op, "REDUCE_PROD")


def _sample(rng: np.random.Generator) -> kit.Graph:
    """The output's scale is near that of typical products of a few factors."""
    while True:
        graph = common.sample_reduction(rng, "reduce_prod")
        (op,), x = graph.ops, graph.tensors["x"]
        factors = _factors(kit.operator_of(op, graph))
        log = math.log2(x.q.scale * 2.0 ** rng.uniform(4, 6)) * factors - 5
        if abs(log) < 100:
            break
    q = kit.Quantisation((float(np.float32(2.0**log)),), (graph.tensors["y"].q.zero_point,))
    return kit.sample("reduce_prod", op.attributes, x, q=q, name="reduce")


def _sample_float(rng: np.random.Generator) -> kit.Graph:
    return float_reduction_sample(rng, "reduce_prod", Reduce)


def _read_onnx(node: kit.OnnxNode) -> None:
    if not node.in_float:
        raise node.left_in_float("it has no int8 form")
    read_reduction_of("reduce_prod")(node)


_INT8 = kit.Form(
    kind="reduce_prod",
    attributes=Reduce,
    infer=common.infer_reduction,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("REDUCE_PROD",), _read, _write),
    axes=common.reduction_axes,
    onnx=kit.OnnxBinding(("ReduceProd",), _read_onnx),
    dtype=kit.DType.INT8,
    limits=f"int8; {_AXES}",
)
_INT16 = int16_form(_INT8, f"int16; {_AXES}")
_FLOAT32 = replace(
    _INT16,
    reference=_reference_float,
    select=float_kernel("product"),
    sample=_sample_float,
    dtype=kit.DType.FLOAT32,
    limits=f"float32; {_AXES}",
)
SPEC = kit.OpSpec(
    (_INT8, _INT16, _FLOAT32, *integer_forms(_FLOAT32, lambda op: "product", limits=_AXES))
)

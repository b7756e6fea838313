"""Float to integers of 8 or 16 bits, and integers to another scale or type. TFLite QUANTIZE.

From float32: `AffineQuantize`. Between integers: `Requantize`; with int32 as in TFLM. Before a
CONCATENATION of uint8 tensors: `ConcatenationWithScaling`, which computes in float32. A quotient
that overflows int32 saturates, and NaN becomes the zero point; TFLite leaves both undefined (LiteRT
on x86 gives the smallest integer).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import check_reach, round_half_away
from toolchain.ops.elementwise.common import (
    Int64,
    check_node,
    check_per_tensor,
    reference_unary,
    require_types,
    rescaling,
    sample_quantisation,
    sample_shape,
)
from toolchain.ops.elementwise.kernels import requantizing, sized_kernel, unary_kernel

_BYTES = (kit.DType.INT8, kit.DType.UINT8)
_WIDE = (kit.DType.INT16, kit.DType.INT32)
_INTEGERS = (*_BYTES, *_WIDE)


@dataclass(frozen=True)
class Quantize(kit.Attributes):
    """`to` is the output's type. `halves_to_even`: ONNX's rounding of float32 to int8. `in_float`:
    int8 that stands for uint8 is rescaled in float32.
    """

    to: kit.DType = kit.DType.INT8
    halves_to_even: bool = False
    in_float: bool = False


def _infer(op: kit.Operator[Quantize]) -> tuple[kit.TensorType, ...]:
    return (kit.TensorType(op.x.shape, op.attributes.to),)


def _requantisation(op: kit.AnyOperator) -> tuple[int, int]:
    return kit.quantize_multiplier(op.x.q.scale / op.y.q.scale)


def _requantize(op: kit.Operator[Quantize], stored: Int64) -> Int64:
    x, y = op.x, op.y
    if op.attributes.in_float:
        return _rescaled_in_float(stored, x.q, y.q)
    centred = kit.wrap_int32(stored - x.q.zero_point)
    scaled = kit.multiply_by_quantized_multiplier(centred, *_requantisation(op))
    info = np.iinfo(y.dtype.value)
    clamped: Int64 = np.clip(kit.wrap_int32(scaled + y.q.zero_point), int(info.min), int(info.max))
    return clamped


def _rescaled_in_float(stored: Int64, x: kit.Quantisation, y: kit.Quantisation) -> Int64:
    """As `ConcatenationWithScaling`: in float32, of the uint8 values that lie 128 higher."""
    scale = np.float32(x.scale) * (np.float32(1) / np.float32(y.scale))
    bias = np.float32(-(x.zero_point + 128)) * scale
    real = ((stored + 128).astype(np.float32) * scale + bias).astype(np.float64)
    near = np.clip(real, -(2.0**31), 2.0**31 - 1)
    clamped: Int64 = np.clip(round_half_away(near) + y.zero_point, -128, 127)
    return clamped


def _reference(op: kit.Operator[Quantize], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    x, y = op.x, op.y
    if x.dtype is not kit.DType.FLOAT32:
        return reference_unary(op, inputs, lambda stored: _requantize(op, stored))
    info = np.iinfo(y.dtype.value)
    with np.errstate(over="ignore", invalid="ignore"):
        quotient = (inputs[0].astype(np.float32) / np.float32(y.q.scale)).astype(np.float64)
    rounded = np.copysign(np.floor(np.abs(quotient) + 0.5), quotient)
    if op.attributes.halves_to_even:
        rounded = np.rint(quotient)
    shifted = np.nan_to_num(rounded, nan=0.0) + y.q.zero_point
    clipped = np.clip(shifted, int(info.min), int(info.max))
    return (clipped.astype(y.dtype.numpy).reshape(y.shape),)


def _select(op: kit.Operator[Quantize], core: kit.Core) -> kit.Kernel:
    x, y = op.x, op.y
    if x.dtype is not kit.DType.FLOAT32:
        require_types(op, *_INTEGERS)
        if _wide(x, y):
            if _has_no_kernel(x, y):
                raise op.refused(f"{x} to {y}; convert with int8 or int16")
            info = np.iinfo(y.dtype.value)
            return requantizing(op, _requantisation(op), int(info.min), int(info.max))
        return unary_kernel(op, lambda v: _requantize(op, v), rescaling(x, y))
    check_reach(1 / y.q.scale, 1)  # even 1.0 would overrun, which TFLite leaves undefined
    function = f"thimble_quantize_f32_{kit.SUFFIXES[y.dtype]}"
    if op.attributes.halves_to_even:
        if y.dtype is not kit.DType.INT8:
            raise op.refused("halves go to even for int8 only")
        function += "_even"
    arguments = {"scale": np.float32(y.q.scale).item(), "zero_point": y.q.zero_point}
    return sized_kernel(op, function, arguments)


def _wide(x: kit.Tensor, y: kit.Tensor) -> bool:
    return x.dtype in _WIDE or y.dtype in _WIDE


def _has_no_kernel(x: kit.Tensor, y: kit.Tensor) -> bool:
    """Neither LiteRT nor TFLM has a kernel for such a pair of types."""
    pair = x.dtype, y.dtype
    return kit.DType.UINT8 in pair and _wide(x, y) and pair != (kit.DType.UINT8, kit.DType.INT16)


def _aliases(op: kit.AnyOperator) -> tuple[kit.Alias, ...]:
    """If scale and zero point stay the same, so does every byte: the output is a view."""
    x, y = op.x, op.y
    same = x.dtype is y.dtype and x.q.scale == y.q.scale and x.q.zero_point == y.q.zero_point
    return (kit.Alias(op.op.outputs[0], op.op.inputs[0]),) if x.dtype in _INTEGERS and same else ()


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    x, y = node.inputs[0], node.outputs[0]
    if x is not None and x.dtype is not kit.DType.FLOAT32:
        check_node(node, *_INTEGERS)
        if _has_no_kernel(x, y):
            raise node.unsupported(
                f"conversion of {x.dtype.value} to {y.dtype.value}",
                "set the converter's inference_input_type and inference_output_type to tf.int8",
            )
    elif y.dtype not in (*_BYTES, kit.DType.INT16):
        raise node.unsupported(f"float32 to {y.dtype.value}", "quantise the model to int8")
    else:
        check_per_tensor(node, y)
    in_float = node.has_options and getattr(node.options, "inFloat", False)
    return kit.ReadOp(Quantize(y.dtype, in_float=in_float), (0,))


def _write(op: kit.AnyOperator) -> kit.WrittenOp:
    return kit.WrittenOp("QUANTIZE", "QuantizeOptions", version=2)


_SAMPLED = tuple(
    (source, target)
    for source, targets in (
        (kit.DType.FLOAT32, (*_BYTES, kit.DType.INT16)),
        (kit.DType.INT8, (*_BYTES, kit.DType.INT16)),
        (kit.DType.UINT8, (*_BYTES, kit.DType.INT16)),
        (kit.DType.INT16, (kit.DType.INT8, *_WIDE)),
        (kit.DType.INT32, (kit.DType.INT8, kit.DType.INT16)),
    )
    for target in targets
)
"""Pairs of types for which LiteRT has a kernel; TFLM has one from int8 to int32 besides."""


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = sample_shape(rng)
    source, target = _SAMPLED[int(rng.integers(len(_SAMPLED)))]
    q_in: kit.Quantisation | None = None
    if source is kit.DType.FLOAT32:
        q_out = sample_quantisation(rng, target)
    else:
        q_in = sample_quantisation(rng, source)
        factor = 1.0 if rng.random() < 0.3 else 2.0 ** rng.uniform(-4, 4)
        factor = 2.0 ** rng.uniform(0, 20) if source is kit.DType.INT32 else factor
        q_out = sample_quantisation(rng, target, q_in.scale * factor)
    x = kit.Tensor("x", shape, source, q_in)
    return kit.sample("quantize", Quantize(target), x, q=q_out)


SPEC = kit.Form(
    kind="quantize",
    attributes=Quantize,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    aliases=_aliases,
    axes=kit.elementwise_axes,
    types=frozenset({kit.DType.FLOAT32, *_INTEGERS}),
    quantised=kit.Quantised(wide_zero=None),
    tflite=kit.TfliteBinding(("QUANTIZE",), _read, _write),
    limits="float32 or uint8 to int8, uint8 or int16; int8 to all; between int8, int16 and int32; "
    "per tensor",
)

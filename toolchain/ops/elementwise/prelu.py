"""x where x >= 0, alpha * x elsewhere, with alpha a tensor. TFLite PRELU.

Arithmetic: `reference_ops::BroadcastPrelu4DSlow`; parameters as in `PreluPrepare`, in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    wrap_int32,
)
from toolchain.ops.arithmetic.merged_rounding import merged_rounding
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.common import (
    Int64,
    infer_broadcast,
    ratio_float32,
    reach,
    require_types,
    sample_quantisation,
    sample_shape,
)
from toolchain.ops.elementwise.functions import BINARY
from toolchain.ops.elementwise.kernels import broadcast_kernel, unary_kernel
from toolchain.ops.elementwise.kinds import binding, plain_forms
from toolchain.ops.readers.int16 import as_int16, int16_form
from toolchain.ops.unary.leaky_relu import LeakyRelu
from toolchain.ops.unary.lookup import Lookup

INPUT, ALPHA = 0, 1
_NAMES = ("input", "step_input", "alpha", "step_alpha")
"""The kernel's parameters."""


def _infer(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    x, alpha = op.input(INPUT), op.input(ALPHA)
    (output,) = infer_broadcast(op)
    if output.shape != x.shape:
        raise ValueError(f"{alpha} does not broadcast to {x}")
    return (output,)


def _multipliers(op: kit.AnyOperator) -> tuple[tuple[int, int], tuple[int, int]]:
    x, alpha, y = op.input(INPUT), op.input(ALPHA), op.y
    slope = ratio_float32(x.q.scale, alpha.q.scale, divisor=y.q.scale)
    return (
        quantize_multiplier(ratio_float32(x.q.scale, divisor=y.q.scale)),
        quantize_multiplier(slope, reach(alpha)),
    )


def _apply(op: kit.AnyOperator, stored: Int64, stored_alpha: Int64) -> Int64:
    x, alpha, y = op.input(INPUT), op.input(ALPHA), op.y
    identity, negative = _multipliers(op)
    centred = stored - x.q.zero_point
    product = centred * (stored_alpha - alpha.q.zero_point)
    scaled = np.where(
        centred >= 0,
        multiply_by_quantized_multiplier(centred, *identity),
        multiply_by_quantized_multiplier(product, *negative),
    )
    info = np.iinfo(y.dtype.value)
    clamped: Int64 = np.clip(scaled + y.q.zero_point, int(info.min), int(info.max))
    return clamped


def _reference(op: kit.AnyOperator, inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    x, alpha = (values.astype(np.int64) for values in inputs)
    return (_apply(op, x, alpha).astype(op.y.dtype.numpy),)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    require_types(op, kit.DType.INT8)
    x, alpha, y = op.input(INPUT), op.input(ALPHA), op.y
    identity, negative = _multipliers(op)
    if alpha.constant is not None and alpha.elements == 1:
        shared = alpha.constant.reshape(()).astype(np.int64)
        return unary_kernel(op, lambda stored: _apply(op, stored, shared))
    largest = max(127 - x.q.zero_point, 128 + x.q.zero_point)
    positive = merged_rounding(identity[1], y.q.zero_point, largest)
    largest *= max(127 - alpha.q.zero_point, 128 + alpha.q.zero_point)
    scaled = merged_rounding(negative[1], y.q.zero_point, largest)
    params = {
        "input_offset": -x.q.zero_point,
        "factor": wrap_int32(1 << positive.growth),
        "multiplier": identity[0],
        "bias": positive.bias,
        "shift": positive.shift,
        "alpha_offset": -alpha.q.zero_point,
        "alpha_factor": wrap_int32(1 << scaled.growth),
        "alpha_multiplier": negative[0],
        "alpha_bias": scaled.bias,
        "alpha_negative_bias": scaled.negative_bias,
        "alpha_shift": scaled.shift,
    }
    struct = kit.Struct("thimble_prelu_params", params)
    return broadcast_kernel(op, core, "thimble_prelu_s8", struct, _NAMES)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = sample_shape(rng)
    forms = (shape[-1:], (1,) * (len(shape) - 1) + shape[-1:], shape[1:], (1,), shape)
    alpha_shape = forms[int(rng.integers(len(forms)))]
    data = rng.integers(-128, 128, alpha_shape).astype(np.int8) if rng.random() < 0.8 else None
    x = kit.Tensor("x", shape, kit.DType.INT8, sample_quantisation(rng))
    alpha = kit.Tensor("alpha", alpha_shape, kit.DType.INT8, sample_quantisation(rng), data)
    scale = x.q.scale * float(2.0 ** rng.uniform(-3, 3))
    y = kit.Tensor("y", shape, kit.DType.INT8, sample_quantisation(rng, scale=scale))
    op = kit.Op("prelu", "prelu", ("x", "alpha"), ("y",))
    inputs = ["x"] if data is not None else ["x", "alpha"]
    return kit.Graph.build("sample", [x, alpha, y], [op], inputs, ["y"])


def _read_onnx(node: kit.OnnxNode) -> None:
    """PRelu; one slope for all is a function of one operand."""
    q = node.output_quantisation()
    if np.broadcast_shapes(node.shape(INPUT), node.shape(ALPHA)) != node.shape(INPUT):
        raise node.unsupported(
            f"its slope of shape {list(node.shape(ALPHA))} is larger than its input of shape "
            f"{list(node.shape(INPUT))}",
            "expand the input first",
        )
    if node.is_constant(ALPHA):
        slopes = np.unique(node.constant(ALPHA).real)
        if slopes.size == 1:
            if node.in_float:
                node.emit_like(INPUT, "leaky_relu", LeakyRelu(float(np.float32(slopes[0]))), q)
            else:
                node.emit_like(INPUT, "lookup", Lookup("LeakyRelu", (float(slopes[0]),)), q)
            return
        _check_real_slopes(node, q)
    axes = node.axes(INPUT)
    inputs = [node.operand(INPUT, axes), node.operand(ALPHA, axes)]
    node.emit("prelu", kit.Attributes(), inputs, q, axes)


_MOST_LOST = 1.0
"""How much storing real slopes in int8 may move the output, in its steps. Below this the outputs,
both roundings included, are within 1 of ONNX Runtime's."""


def _check_real_slopes(node: kit.OnnxNode, output: kit.Quantisation) -> None:
    """Raise UnsupportedError where real slopes, stored as multiples of one scale, lose too much."""
    slopes = node.constant(ALPHA)
    if node.in_float or slopes.quantisation is not None:
        return
    scale = float(np.abs(slopes.real).max()) / 127
    off = np.abs(np.rint(slopes.real / scale) * scale - slopes.real).max() if scale else 0.0
    x = node.quantisation(INPUT)
    lost = (x.zero_point + 128) * x.scale * off / output.scale
    if lost >= _MOST_LOST:
        raise node.unsupported(
            f"its slopes are real numbers, which lose up to {lost:.3g} steps of the output in int8",
            "quantise the slopes too, or scale them to one magnitude",
        )


_INT8 = kit.Form(
    kind="prelu",
    attributes=kit.Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=binding("prelu", 1, kit.DType.INT8),
    onnx=kit.OnnxBinding((BINARY["prelu"].onnx,), _read_onnx),
    dtype=kit.DType.INT8,
    limits="int8, alpha of any shape that broadcasts to the input",
)


def _infer_s16(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    x, alpha = op.input(INPUT), op.input(ALPHA)
    if alpha.dtype is not kit.DType.INT8 or np.broadcast_shapes(x.shape, alpha.shape) != x.shape:
        raise ValueError(f"{alpha} is no int8 that broadcasts to {x}")
    return (kit.TensorType(x.shape, x.dtype),)


def _select_s16(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    (multiplier, shift), (alpha_multiplier, alpha_shift) = _multipliers(op)
    params = {
        "multiplier": multiplier,
        "shift": shift,
        "alpha_offset": -op.input(ALPHA).q.zero_point,
        "alpha_multiplier": alpha_multiplier,
        "alpha_shift": alpha_shift,
    }
    struct = kit.Struct("thimble_prelu_s16_params", params)
    return broadcast_kernel(op, core, "thimble_prelu_s16", struct, _NAMES)


def _sample_s16(rng: np.random.Generator) -> kit.Graph:
    sample = _sample(rng)
    wide = as_int16(sample)
    return replace(wide, tensors={**wide.tensors, "alpha": sample.tensors["alpha"]})


_INT16 = replace(
    int16_form(_INT8, "int16, int8 alpha of any shape that broadcasts to the input"),
    infer=_infer_s16,
    select=_select_s16,
    sample=_sample_s16,
    tflite=binding("prelu", 1, kit.DType.INT16, kit.DType.INT8),
    dtype=kit.DType.INT16,
    types=frozenset({kit.DType.INT16, kit.DType.INT8}),
)

SPEC = kit.OpSpec((_INT8, _INT16, *plain_forms(_INT8)))

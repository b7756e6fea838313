"""x where x >= 0, alpha * x elsewhere, with alpha a tensor. TFLite PRELU.

Arithmetic: `reference_ops::BroadcastPrelu4DSlow`; parameters as in `PreluPrepare`, in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op, Quantisation, Tensor
from toolchain.ops.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    wrap_int32,
)
from toolchain.ops.arithmetic.merged_rounding import merged_rounding
from toolchain.ops.axes import elementwise_axes
from toolchain.ops.elementwise.binary_f32 import float_form
from toolchain.ops.elementwise.common import (
    Int64,
    check_node,
    infer_broadcast,
    ratio_float32,
    reach,
    require_types,
    sample_quantisation,
    sample_shape,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel, unary_kernel
from toolchain.ops.forms import OldForm, OpSpec
from toolchain.ops.kernel import Kernel, Struct
from toolchain.ops.readers.int16 import as_int16, int16_form
from toolchain.ops.spec import (
    Array,
    OnnxBinding,
    OnnxNode,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)
from toolchain.ops.unary.leaky_relu import LeakyRelu
from toolchain.ops.unary.lookup import Lookup

INPUT, ALPHA = 0, 1
_NAMES = ("input", "step_input", "alpha", "step_alpha")
"""The kernel's parameters."""


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, alpha = graph.input(op, INPUT), graph.input(op, ALPHA)
    (output,) = infer_broadcast(op, graph)
    if output.shape != x.shape:
        raise ValueError(f"{alpha} does not broadcast to {x}")
    return (output,)


def _multipliers(op: Op, graph: Graph) -> tuple[tuple[int, int], tuple[int, int]]:
    x, alpha, y = graph.input(op, INPUT), graph.input(op, ALPHA), graph.output(op)
    slope = ratio_float32(x.q.scale, alpha.q.scale, divisor=y.q.scale)
    return (
        quantize_multiplier(ratio_float32(x.q.scale, divisor=y.q.scale)),
        quantize_multiplier(slope, reach(alpha)),
    )


def _apply(op: Op, graph: Graph, stored: Int64, stored_alpha: Int64) -> Int64:
    x, alpha, y = graph.input(op, INPUT), graph.input(op, ALPHA), graph.output(op)
    identity, negative = _multipliers(op, graph)
    centred = stored - x.q.zero_point
    product = centred * (stored_alpha - alpha.q.zero_point)
    scaled = np.where(
        centred >= 0,
        multiply_by_quantized_multiplier(centred, *identity),
        multiply_by_quantized_multiplier(product, *negative),
    )
    clamped: Int64 = np.clip(scaled + y.q.zero_point, -128, 127)
    return clamped


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, alpha = (values.astype(np.int64) for values in inputs)
    return (_apply(op, graph, x, alpha).astype(np.int8),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    require_types(op, graph, DType.INT8)
    x, alpha, y = graph.input(op, INPUT), graph.input(op, ALPHA), graph.output(op)
    identity, negative = _multipliers(op, graph)
    if alpha.constant is not None and alpha.elements == 1:
        shared = alpha.constant.reshape(()).astype(np.int64)
        return unary_kernel(op, graph, lambda stored: _apply(op, graph, stored, shared))
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
    struct = Struct("thimble_prelu_params", params)
    return broadcast_kernel(op, graph, core, "thimble_prelu_s8", struct, _NAMES)


def _read(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT8)
    return ReadOp(Attributes(), (INPUT, ALPHA))


def _write(op: Op, graph: Graph) -> WrittenOp:
    return WrittenOp("PRELU")


def _sample(rng: np.random.Generator) -> Graph:
    shape = sample_shape(rng)
    forms = (shape[-1:], (1,) * (len(shape) - 1) + shape[-1:], shape[1:], (1,), shape)
    alpha_shape = forms[int(rng.integers(len(forms)))]
    data = rng.integers(-128, 128, alpha_shape).astype(np.int8) if rng.random() < 0.8 else None
    x = Tensor("x", shape, DType.INT8, sample_quantisation(rng))
    alpha = Tensor("alpha", alpha_shape, DType.INT8, sample_quantisation(rng), data)
    scale = x.q.scale * float(2.0 ** rng.uniform(-3, 3))
    y = Tensor("y", shape, DType.INT8, sample_quantisation(rng, scale=scale))
    op = Op("prelu", "prelu", ("x", "alpha"), ("y",))
    inputs = ["x"] if data is not None else ["x", "alpha"]
    return Graph.build("sample", [x, alpha, y], [op], inputs, ["y"])


def _read_onnx(node: OnnxNode) -> None:
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
    node.emit("prelu", Attributes(), inputs, q, axes)


_MOST_LOST = 1.0
"""How much storing real slopes in int8 may move the output, in its steps. Below this the outputs,
both roundings included, are within 1 of ONNX Runtime's."""


def _check_real_slopes(node: OnnxNode, output: Quantisation) -> None:
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


_INT8 = OldForm(
    kind="prelu",
    attributes=Attributes,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=elementwise_axes,
    tflite=TfliteBinding(("PRELU",), _read, _write),
    onnx=OnnxBinding(("PRelu",), _read_onnx),
    dtype=DType.INT8,
    limits="int8, alpha of any shape that broadcasts to the input",
)


def _infer_s16(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, alpha = graph.input(op, INPUT), graph.input(op, ALPHA)
    if alpha.dtype is not DType.INT8 or np.broadcast_shapes(x.shape, alpha.shape) != x.shape:
        raise ValueError(f"{alpha} is no int8 that broadcasts to {x}")
    return (TensorType(x.shape, x.dtype),)


def _multipliers_s16(op: Op, graph: Graph) -> tuple[tuple[int, int], tuple[int, int]]:
    x, alpha, y = graph.input(op, INPUT), graph.input(op, ALPHA), graph.output(op)
    slope = ratio_float32(x.q.scale, alpha.q.scale, divisor=y.q.scale)
    return (
        quantize_multiplier(ratio_float32(x.q.scale, divisor=y.q.scale)),
        quantize_multiplier(slope, reach(alpha)),
    )


def _reference_s16(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    x, alpha = (values.astype(np.int64) for values in inputs)
    identity, negative = _multipliers_s16(op, graph)
    product = x * (alpha - graph.input(op, ALPHA).q.zero_point)
    scaled = np.where(
        x >= 0,
        multiply_by_quantized_multiplier(x, *identity),
        multiply_by_quantized_multiplier(product, *negative),
    )
    return (np.clip(scaled, -32768, 32767).astype(np.int16),)


def _select_s16(op: Op, graph: Graph, core: Core) -> Kernel:
    (multiplier, shift), (alpha_multiplier, alpha_shift) = _multipliers_s16(op, graph)
    params = {
        "multiplier": multiplier,
        "shift": shift,
        "alpha_offset": -graph.input(op, ALPHA).q.zero_point,
        "alpha_multiplier": alpha_multiplier,
        "alpha_shift": alpha_shift,
    }
    struct = Struct("thimble_prelu_s16_params", params)
    return broadcast_kernel(op, graph, core, "thimble_prelu_s16", struct, _NAMES)


def _read_s16(node: TfliteNode) -> ReadOp:
    check_node(node, DType.INT16, DType.INT8)
    return ReadOp(Attributes(), (INPUT, ALPHA))


def _sample_s16(rng: np.random.Generator) -> Graph:
    sample = _sample(rng)
    wide = as_int16(sample)
    return replace(wide, tensors={**wide.tensors, "alpha": sample.tensors["alpha"]})


_INT16 = replace(
    int16_form(_INT8, "int16, int8 alpha of any shape that broadcasts to the input"),
    infer=_infer_s16,
    reference=_reference_s16,
    select=_select_s16,
    sample=_sample_s16,
    tflite=TfliteBinding(("PRELU",), _read_s16, _write),
    dtype=DType.INT16,
    types=frozenset({DType.INT16, DType.INT8}),
)

SPEC = OpSpec((_INT8, _INT16, float_form(_INT8)))

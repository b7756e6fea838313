"""x where x >= 0, alpha * x elsewhere, with alpha a tensor. TFLite PRELU.

Arithmetic: `reference_ops::BroadcastPrelu4DSlow`; parameters as in `PreluPrepare`, in float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.merged_rounding import merged_rounding
from toolchain.ops.elementwise.common import (
    Int64,
    ratio_float32,
    reach,
    sample_quantisation,
    sample_shape,
    stored,
)
from toolchain.ops.elementwise.kernels import broadcast_kernel
from toolchain.ops.elementwise.rows import Arithmetic, Binary, Lookup, Reader, of_two
from toolchain.ops.readers.int16 import as_int16
from toolchain.ops.unary.leaky_relu import LeakyRelu

INPUT, ALPHA = 0, 1


def infer(op: kit.AnyOperator) -> tuple[kit.TensorType, ...]:
    """Shape rule. Raises ValueError unless alpha, of int8 beside int16, broadcasts to the input."""
    x, alpha = op.input(INPUT), op.input(ALPHA)
    wanted = kit.DType.INT8 if x.dtype is kit.DType.INT16 else x.dtype
    if alpha.dtype is not wanted or np.broadcast_shapes(x.shape, alpha.shape) != x.shape:
        raise ValueError(f"{alpha} is no {wanted.value} that broadcasts to {x}")
    return (kit.TensorType(x.shape, x.dtype),)


@dataclass(frozen=True)
class _Arithmetic(Arithmetic):
    """`identity` and `negative`: multipliers and shifts of elements, and of their products."""

    zero: int
    zero_alpha: int
    identity: tuple[int, int]
    negative: tuple[int, int]
    y: kit.Tensor

    def apply(self, a: Int64, b: Int64) -> Int64:
        centred = a - self.zero
        scaled = np.where(
            centred >= 0,
            kit.multiply_by_quantized_multiplier(centred, *self.identity),
            kit.multiply_by_quantized_multiplier(centred * (b - self.zero_alpha), *self.negative),
        )
        return stored(scaled, self.y)

    def kernel(self, op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
        if self.y.dtype is kit.DType.INT8:
            struct = kit.Struct("thimble_prelu_params", self._params())
            return broadcast_kernel(op, core, "thimble_prelu_s8", struct)
        params = {
            "multiplier": self.identity[0],
            "shift": self.identity[1],
            "alpha_offset": -self.zero_alpha,
            "alpha_multiplier": self.negative[0],
            "alpha_shift": self.negative[1],
        }
        struct = kit.Struct("thimble_prelu_s16_params", params)
        return broadcast_kernel(op, core, "thimble_prelu_s16", struct)

    def _params(self) -> dict[str, int]:
        """Parameters of int8: roundings hold the output's zero point."""
        largest, zero_out = max(127 - self.zero, 128 + self.zero), self.y.q.zero_point
        positive = merged_rounding(self.identity[1], zero_out, largest)
        largest *= max(127 - self.zero_alpha, 128 + self.zero_alpha)
        scaled = merged_rounding(self.negative[1], zero_out, largest)
        return {
            "input_offset": -self.zero,
            "factor": kit.wrap_int32(1 << positive.growth),
            "multiplier": self.identity[0],
            "bias": positive.bias,
            "shift": positive.shift,
            "alpha_offset": -self.zero_alpha,
            "alpha_factor": kit.wrap_int32(1 << scaled.growth),
            "alpha_multiplier": self.negative[0],
            "alpha_bias": scaled.bias,
            "alpha_negative_bias": scaled.negative_bias,
            "alpha_shift": scaled.shift,
        }


def _arithmetic(op: kit.AnyOperator) -> _Arithmetic:
    x, alpha, y = op.input(INPUT), op.input(ALPHA), op.y
    slope = ratio_float32(x.q.scale, alpha.q.scale, divisor=y.q.scale)
    identity = kit.quantize_multiplier(ratio_float32(x.q.scale, divisor=y.q.scale))
    negative = kit.quantize_multiplier(slope, reach(alpha))
    return _Arithmetic(x.q.zero_point, alpha.q.zero_point, identity, negative, y)


def sample(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    """An int8 operator."""
    shape = sample_shape(rng)
    forms = (shape[-1:], (1,) * (len(shape) - 1) + shape[-1:], shape[1:], (1,), shape)
    alpha_shape = forms[int(rng.integers(len(forms)))]
    data = rng.integers(-128, 128, alpha_shape).astype(np.int8) if rng.random() < 0.8 else None
    x = kit.Tensor("x", shape, kit.DType.INT8, sample_quantisation(rng))
    alpha = kit.Tensor("alpha", alpha_shape, kit.DType.INT8, sample_quantisation(rng), data)
    scale = x.q.scale * float(2.0 ** rng.uniform(-3, 3))
    q = sample_quantisation(rng, scale=scale)
    return kit.sample(kind, attributes, x, alpha, q=q)


def readers(row: Binary) -> tuple[Reader]:
    """Readers of ONNX's operator."""
    return (_read_onnx,)


def _read_onnx(node: kit.OnnxNode) -> None:
    """One slope for all is a function of one operand."""
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
both roundings included, are within 1 of ONNX Runtime's; above it the operator runs in float32."""


def _check_real_slopes(node: kit.OnnxNode, output: kit.Quantisation) -> None:
    """Leave the operator in float32 where real slopes, stored as multiples of one scale, lose too
    much."""
    slopes = node.constant(ALPHA)
    if node.in_float or slopes.quantisation is not None:
        return
    scale = float(np.abs(slopes.real).max()) / 127
    off = np.abs(np.rint(slopes.real / scale) * scale - slopes.real).max() if scale else 0.0
    x = node.quantisation(INPUT)
    lost = (x.zero_point + 128) * x.scale * off / output.scale
    if lost >= _MOST_LOST:
        raise node.left_in_float(
            f"its slopes are real numbers, which lose up to {lost:.3g} steps of the output in int8",
            "quantise the slopes too, or scale them to one magnitude",
        )


def _sample_s16(rng: np.random.Generator, kind: str, attributes: kit.Attributes) -> kit.Graph:
    graph = sample(rng, kind, attributes)
    wide = as_int16(graph)
    return replace(wide, tensors={**wide.tensors, "alpha": graph.tensors["alpha"]})


_LIMITS = "alpha of any shape that broadcasts to the input"
INT8 = of_two(_arithmetic, version=1, limits=f", {_LIMITS}")
INT16 = replace(INT8, beside=(kit.DType.INT8,), sample=_sample_s16, limits=f", int8 {_LIMITS}")

"""FULLY_CONNECTED of float rows with int8 weights: LiteRT's `EvalHybridDense`.

Each row is quantised on its own. A sum is multiplied by the product of its scales.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.window_f32 import window_f32
from toolchain.ops.hybrid.kernels import convolution_kernel
from toolchain.ops.hybrid.sums import (
    centred,
    check_hybrid_node,
    hybrid_form,
    hybrid_sample,
    in_float32,
    random_range,
    range_asked,
    real_weights,
    with_bias,
)
from toolchain.ops.matmul.partial_fully_connected import layer_axes, leading_dimensions


@dataclass(frozen=True)
class HybridDense(kit.Attributes):
    """`keep_dims` as in `FullyConnected`. `range`: how rows are quantised, LiteRT's each by itself,
    ONNX's all together.
    """

    activation: kit.Activation = kit.Activation.NONE
    keep_dims: bool = False
    range: Range = Range.SYMMETRIC


def _infer(op: kit.Operator[HybridDense]) -> kit.TensorTypes:
    x, weights = op.input(kit.INPUT), op.input(kit.WEIGHTS)
    rows = leading_dimensions(x, weights, op.attributes.keep_dims)
    return (kit.TensorType((*rows, weights.shape[0]), kit.DType.FLOAT32),)


def _reference(op: kit.Operator[HybridDense], inputs: kit.Inputs) -> kit.Arrays:
    weights, a = op.input(kit.WEIGHTS), op.attributes
    rows = inputs[kit.INPUT].astype(np.float32).reshape(-1, weights.shape[1])
    stored, steps = centred(rows, a.range)
    sums = in_float32(stored @ real_weights(op, inputs[kit.WEIGHTS]).T)
    scaled = sums * (np.array(weights.q.scales, np.float32) * steps[:, None])
    return (with_bias(scaled, op, inputs, a.activation).reshape(op.y.shape),)


def _select(op: kit.Operator[HybridDense], core: kit.Core) -> kit.Kernel:
    a, (units, depth) = op.attributes, op.input(kit.WEIGHTS).shape
    rows = op.input(kit.INPUT).elements // depth
    images, pixels = (1, rows) if a.range is Range.ONNX else (rows, 1)
    shapes = (images, 1, pixels, depth), (images, 1, pixels, units)
    window = window_f32(*shapes, kit.Window((1, 1)), a.activation)
    return convolution_kernel(op, core, window, a.range, in_turn=False)


def _axes(op: kit.Operator[HybridDense]) -> tuple[kit.Axis, ...]:
    """Outputs, and rows where each is quantised by itself."""
    *rows, outputs = layer_axes(op)
    return (outputs,) if op.attributes.range is Range.ONNX else (*rows, outputs)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    options = node.options
    if options.weightsFormat != "DEFAULT":
        raise node.unsupported("shuffled weights", "convert without the shuffled weights format")
    check_hybrid_node(node, 2, 0)
    keep_dims = bool(options.keepNumDims)
    attributes = HybridDense(kit.read_activation(node), keep_dims, range_asked(node))
    return kit.ReadOp(attributes, kit.present_inputs(node))


def _write(op: kit.Operator[HybridDense]) -> kit.WrittenOp:
    options = {
        "fusedActivationFunction": op.attributes.activation,
        "keepNumDims": op.attributes.keep_dims,
        "asymmetricQuantizeInputs": op.attributes.range is Range.ASYMMETRIC,
    }
    return kit.WrittenOp("FULLY_CONNECTED", "FullyConnectedOptions", options, version=9)


def hybrid_dense(plain: kit.Form[Any]) -> kit.Form[Any]:
    """The form of a float `fully_connected` whose weights are int8."""

    def attributes(op: kit.Op, rng: np.random.Generator) -> HybridDense:
        activation = getattr(op.attributes, "activation", kit.Activation.NONE)
        return HybridDense(activation, range=random_range(rng))

    sample = hybrid_sample(
        plain.sample, 0, attributes, per_channel=lambda rng: bool(rng.random() < 0.5)
    )
    return hybrid_form(
        plain,
        attributes=HybridDense,
        infer=_infer,
        reference=_reference,
        select=_select,
        sample=sample,
        axes=_axes,
        tflite=kit.TfliteBinding(("FULLY_CONNECTED",), _read, _write),
    )

"""FULLY_CONNECTED of float rows with int8 weights: LiteRT's `EvalHybridDense`.

Each row is quantised on its own. A sum is multiplied by the product of its scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolchain.boards import Core
from toolchain.ir import Attributes, DType, Graph, Op
from toolchain.ops.arithmetic.activation import Activation, read_activation
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.convolution.window_f32 import window_f32
from toolchain.ops.forms import OldForm, no_reductions
from toolchain.ops.hybrid.kernels import convolution_kernel
from toolchain.ops.hybrid.sums import (
    centred,
    check_hybrid_node,
    hybrid_sample,
    in_float32,
    random_range,
    range_asked,
    real_weights,
    with_bias,
)
from toolchain.ops.kernel import Kernel
from toolchain.ops.matmul.partial_fully_connected import leading_dimensions
from toolchain.ops.spec import (
    Array,
    Axis,
    Reach,
    ReadOp,
    TensorType,
    TfliteBinding,
    TfliteNode,
    WrittenOp,
)
from toolchain.ops.weighted import INPUT, WEIGHTS, present_inputs
from toolchain.ops.window import Window


@dataclass(frozen=True)
class HybridDense(Attributes):
    """`keep_dims` as in `FullyConnected`. `range`: how rows are quantised, LiteRT's each by itself,
    ONNX's all together.
    """

    activation: Activation = Activation.NONE
    keep_dims: bool = False
    range: Range = Range.SYMMETRIC


def _of(op: Op) -> HybridDense:
    assert isinstance(op.attributes, HybridDense)
    return op.attributes


def _infer(op: Op, graph: Graph) -> tuple[TensorType, ...]:
    x, weights = graph.input(op, INPUT), graph.input(op, WEIGHTS)
    rows = leading_dimensions(x, weights, _of(op).keep_dims)
    return (TensorType((*rows, weights.shape[0]), DType.FLOAT32),)


def _reference(op: Op, graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    weights, a = graph.input(op, WEIGHTS), _of(op)
    rows = inputs[INPUT].astype(np.float32).reshape(-1, weights.shape[1])
    stored, steps = centred(rows, a.range)
    sums = in_float32(stored @ real_weights(op, graph, inputs[WEIGHTS]).T)
    scaled = sums * (np.array(weights.q.scales, np.float32) * steps[:, None])
    return (with_bias(scaled, op, inputs, a.activation).reshape(graph.output(op).shape),)


def _select(op: Op, graph: Graph, core: Core) -> Kernel:
    a, (units, depth) = _of(op), graph.input(op, WEIGHTS).shape
    rows = graph.input(op, INPUT).elements // depth
    images, pixels = (1, rows) if a.range is Range.ONNX else (rows, 1)
    shapes = (images, 1, pixels, depth), (images, 1, pixels, units)
    window = window_f32(*shapes, Window((1, 1)), a.activation)
    return convolution_kernel(op, graph, core, window, a.range, in_turn=False)


def _axes(op: Op, graph: Graph) -> tuple[Axis, ...]:
    """Outputs, each with weights of its own; rows where input and output agree on them, and each is
    quantised by itself.
    """
    x, y = graph.input(op, INPUT), graph.output(op)
    own = (Reach(0),) * (len(op.inputs) - 1)
    outputs = Axis(len(y.shape) - 1, (None, *own), lambda part: op.attributes)
    if x.shape[:-1] != y.shape[:-1] or _of(op).range is Range.ONNX:
        return (outputs,)
    whole = (None,) * len(own)
    rows = (
        Axis(axis, (Reach(axis), *whole), lambda part: op.attributes)
        for axis in range(len(y.shape) - 1)
    )
    return (*rows, outputs)


def _read(node: TfliteNode) -> ReadOp:
    options = node.options
    if options.weightsFormat != "DEFAULT":
        raise node.unsupported("shuffled weights", "convert without the shuffled weights format")
    check_hybrid_node(node, 2, 0)
    keep_dims = bool(options.keepNumDims)
    attributes = HybridDense(read_activation(node), keep_dims, range_asked(node))
    return ReadOp(attributes, present_inputs(node))


def _write(op: Op, graph: Graph) -> WrittenOp:
    options = {
        "fusedActivationFunction": _of(op).activation,
        "keepNumDims": _of(op).keep_dims,
        "asymmetricQuantizeInputs": _of(op).range is Range.ASYMMETRIC,
    }
    return WrittenOp("FULLY_CONNECTED", "FullyConnectedOptions", options, version=9)


def hybrid_dense(plain: OldForm) -> OldForm:
    """The form of a float `fully_connected` whose weights are int8."""

    def attributes(op: Op, rng: np.random.Generator) -> HybridDense:
        activation = getattr(op.attributes, "activation", Activation.NONE)
        return HybridDense(activation, range=random_range(rng))

    sample = hybrid_sample(
        plain.sample, 0, attributes, per_channel=lambda rng: bool(rng.random() < 0.5)
    )
    return replace(
        plain,
        attributes=HybridDense,
        infer=_infer,
        reference=_reference,
        select=_select,
        sample=sample,
        axes=_axes,
        reductions=no_reductions,
        tflite=TfliteBinding(("FULLY_CONNECTED",), _read, _write),
        weights=DType.INT8,
        name="hybrid",
        limits="float32 with constant int8 weights, as LiteRT's hybrid kernels",
    )

"""Sums of hybrid products in NumPy, and samples of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Float32, Int64, Range, quantised
from toolchain.ops.readers.float32 import clamped

LIMITS = "float32 with constant int8 weights, as LiteRT's hybrid kernels"
REMEDY = "quantise activations too, with a representative_dataset, or convert to float"
SYMMETRIC = (
    "convert the float model with converter.optimizations = [tf.lite.Optimize.DEFAULT], which "
    "quantises weights symmetrically"
)
"""The remedy for int8 weights with a zero point."""


def centred(images: Float32, chosen: Range) -> tuple[Int64, Float32]:
    """Each image of a batch in steps of its scale, around 0 (int64); and the scales.

    LiteRT's ranges are those of each image, ONNX's is that of all.
    """
    whole = chosen is Range.ONNX
    parts = [quantised(image, chosen) for image in ([images] if whole else images)]
    stored = np.stack([values - zero_point for values, _, zero_point in parts])
    scales = np.array([scale for _, scale, _ in parts], np.float32)
    return stored.reshape(images.shape), np.broadcast_to(scales, len(images))


def real_weights(op: kit.AnyOperator, weights: kit.Array) -> Int64:
    """Weights around 0, in steps of their scales (int64)."""
    q = op.input(kit.WEIGHTS).q
    along = [1] * weights.ndim
    if q.axis is not None:
        along[q.axis] = -1
    return weights.astype(np.int64) - np.array(q.zero_points, np.int64).reshape(along)


def in_float32(sums: Int64) -> Float32:
    """Sums as an int32 accumulator that wraps holds them, in float32."""
    return kit.wrap_int32(sums).astype(np.float32)


def with_bias(
    scaled: Float32, op: kit.AnyOperator, inputs: kit.Inputs, activation: kit.Activation
) -> Float32:
    """Scaled sums with the bias, held within the activation's range."""
    if op.given(kit.BIAS) is not None:
        scaled = scaled + inputs[kit.BIAS].astype(np.float32).reshape(-1)
    return clamped(scaled, activation)


def range_asked(node: kit.TfliteNode) -> Range:
    """How LiteRT quantises rows for an operator that chooses it."""
    return Range.ASYMMETRIC if node.options.asymmetricQuantizeInputs else Range.SYMMETRIC


def random_range(rng: np.random.Generator) -> Range:
    """One of LiteRT's."""
    return Range.ASYMMETRIC if rng.random() < 0.5 else Range.SYMMETRIC


def hybrid_form(plain: kit.Form[Any], **changed: Any) -> kit.Form[Any]:
    """The form of a float kind whose weights are int8: `plain` with these fields changed."""
    hybrid = {
        "reductions": kit.no_reductions,
        "weights": kit.DType.INT8,
        "name": "hybrid",
        "limits": LIMITS,
    }
    return replace(plain, **{**hybrid, **changed})


def check_floats(node: kit.TfliteNode, indices: Sequence[int]) -> None:
    """Raise UnsupportedError where one of these inputs is there and is not float32."""
    for index in indices:
        tensor = node.inputs[index] if index < len(node.inputs) else None
        if tensor is not None and tensor.dtype is not kit.DType.FLOAT32:
            raise node.unsupported(
                f"input {index} ({tensor.name!r}) is {tensor.dtype.value} beside int8 weights of "
                "floats",
                REMEDY,
            )


def check_hybrid_node(
    node: kit.TfliteNode,
    weights_rank: int,
    axis: int,
    order: tuple[int, int, int] = (kit.INPUT, kit.WEIGHTS, kit.BIAS),
) -> None:
    """Raise UnsupportedError for operands that no hybrid kernel takes.

    Weights have zero points 0, and one scale, or one for each index of `axis`. `order`: the places
    of input, weights and bias in the file.
    """
    given, weighed, added = order
    weights, x = node.inputs[weighed], node.inputs[given]
    bias = node.inputs[added] if len(node.inputs) > added else None
    if x is None or weights is None or x.dtype is not kit.DType.FLOAT32:
        raise node.unsupported("its input is not float32", REMEDY)
    if bias is not None and bias.dtype is not kit.DType.FLOAT32:
        raise node.unsupported(f"its bias is {bias.dtype.value} beside float32 inputs", REMEDY)
    for index in (weighed, added)[: 1 if bias is None else 2]:
        node.constant(index)
    if len(weights.shape) != weights_rank or weights.quantisation is None:
        raise node.unsupported(f"weights of shape {list(weights.shape)}, or without a scale")
    if any(weights.q.zero_points):
        raise node.unsupported("weights with a zero point beside float32 inputs", SYMMETRIC)
    if len(weights.q.scales) not in (1, weights.shape[axis]):
        raise node.unsupported(f"{len(weights.q.scales)} scales of weights {weights}")


def hybrid_sample(
    sample: Callable[[np.random.Generator], kit.Graph],
    axis: int,
    attributes: Callable[[kit.Op, np.random.Generator], kit.Attributes],
    *,
    per_channel: Callable[[np.random.Generator], bool] = lambda rng: True,
    zero_points: Callable[[np.random.Generator, int], tuple[int, ...]] = lambda rng, count: (
        (0,) * count
    ),
) -> Callable[[np.random.Generator], kit.Graph]:
    """The samples of a float kind with int8 weights, whose scales run along `axis`.

    `zero_points` draws so many.
    """

    def made(rng: np.random.Generator) -> kit.Graph:
        graph = sample(rng)
        (op,), weights = graph.ops, graph.tensors["weights"]
        count = weights.shape[axis] if per_channel(rng) else 1
        scales = tuple(float(np.float32(one)) for one in rng.uniform(0.001, 0.02, count))
        zeros = zero_points(rng, count)
        stored = replace(
            weights,
            dtype=kit.DType.INT8,
            quantisation=kit.Quantisation(scales, zeros, axis if count > 1 else None),
            constant=rng.integers(-127, 128, weights.shape).astype(np.int8),
        )
        tensors = [stored if t is weights else t for t in graph.tensors.values()]
        ops = [replace(op, attributes=attributes(op, rng))]
        given = [name for name in graph.inputs if name != "weights"]
        return kit.Graph.build(graph.name, tensors, ops, given, graph.outputs)

    return made

"""Batch normalisation that could not be merged into a convolution: x * gain + offset per channel.

ONNX BatchNormalization between two quantised tensors: in float32, operation by operation as ONNX
Runtime, rounded once. TFLite's converter writes a product and a sum instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.rounding import nearest
from toolchain.ops.elementwise import common as elementwise
from toolchain.ops.normalisation.rows import row_extents


@dataclass(frozen=True)
class BatchNorm(kit.Attributes):
    """Gain and offset as real numbers, one of each per index of the last axis."""

    gain: tuple[float, ...]
    offset: tuple[float, ...]


def _infer(op: kit.Operator[BatchNorm]) -> kit.TensorTypes:
    x, attributes = op.x, op.attributes
    if not x.shape or not len(attributes.gain) == len(attributes.offset) == x.shape[-1]:
        raise ValueError(f"{len(attributes.gain)} gains for {x}")
    return (kit.TensorType(x.shape, x.dtype),)


def _reals(op: kit.Operator[BatchNorm]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    attributes = op.attributes
    return np.array(attributes.gain, np.float32), np.array(attributes.offset, np.float32)


def _reference(op: kit.Operator[BatchNorm], inputs: kit.Inputs) -> kit.Arrays:
    x, y = op.x, op.y
    gain, offset = _reals(op)
    real = (inputs[0].astype(np.int64) - x.q.zero_point).astype(np.float32) * np.float32(x.q.scale)
    value: NDArray[np.float32] = (real * gain + offset) / np.float32(y.q.scale)
    return (np.clip(nearest(value) + y.q.zero_point, -128, 127).astype(np.int8),)


def _select(op: kit.Operator[BatchNorm], core: kit.Core) -> kit.Kernel:
    elementwise.require_types(op, kit.DType.INT8)
    x, y = op.x, op.y
    gain, offset = _reals(op)
    params = kit.Struct(
        "thimble_batch_norm_params",
        {
            "pixels": x.elements // x.shape[-1],
            "channels": x.shape[-1],
            "gain": kit.Packed("gain"),
            "offset": kit.Packed("offset"),
            "input_scale": float(x.q.scale),
            "input_zero_point": x.q.zero_point,
            "output_scale": float(y.q.scale),
            "output_zero_point": y.q.zero_point,
        },
    )
    call = kit.Call(
        "thimble_batch_norm_s8", {"params": params, "input": kit.Input(0), "output": kit.Output(0)}
    )
    return kit.Kernel(
        (call,),
        row_extents(
            "params.pixels",
            "params.channels",
            lambda t: dict.fromkeys(("gain", "offset"), 4 * t.call["params.channels"]),
        ),
        constants=(kit.constant("gain", gain), kit.constant("offset", offset)),
        find_overlaps=lambda: elementwise.overlaps_same_shape(op, core),
    )


def _read_onnx(node: kit.OnnxNode) -> None:
    """Scale, bias, mean and variance are constant."""
    if node.attribute("training_mode", 0):
        raise node.unsupported("training_mode is set", "export the model for inference")
    scale, bias, mean, variance = (
        node.constant(index).real.astype(np.float32).reshape(-1) for index in range(1, 5)
    )
    epsilon = np.float32(node.attribute("epsilon", 1e-5))
    gain = scale / np.sqrt(variance + epsilon)
    offset = bias - mean * gain
    rank = len(node.shape(0))
    axes = (0, *range(2, rank), 1) if rank > 1 else (0,)
    attributes = BatchNorm(tuple(map(float, gain)), tuple(map(float, offset)))
    q = node.output_quantisation()
    node.emit("batch_norm", attributes, [node.operand(0, axes)], q, axes)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = (*elementwise.sample_shape(rng, 3, 6), int(rng.integers(1, 20)))
    q = elementwise.sample_quantisation(rng)
    gain = 2.0 ** rng.uniform(-2, 1, shape[-1]) * rng.choice([-1.0, 1.0], shape[-1])
    offset = 30 * q.scale * rng.standard_normal(shape[-1])
    x = kit.Tensor("x", shape, kit.DType.INT8, q)
    out = elementwise.sample_quantisation(rng, scale=q.scale)
    attributes = BatchNorm(tuple(map(float, gain)), tuple(map(float, offset)))
    return kit.sample("batch_norm", attributes, x, q=out, name="norm")


SPEC = kit.Form(
    kind="batch_norm",
    attributes=BatchNorm,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=kit.leading_axes,
    onnx=kit.OnnxBinding(("BatchNormalization",), _read_onnx),
    limits="int8, for inference; computed in float32",
)

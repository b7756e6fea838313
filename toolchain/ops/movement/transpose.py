"""Transpose: output axis i is input axis `permutation[i]`.

TFLite TRANSPOSE. Any element type; up to six dimensions after those that stay adjacent are merged.
If only dimensions of size 1 move, the output is a view.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import StridedCopy, row_major, strided_copy
from toolchain.ops.movement.kernels import copies_kernel


@dataclass(frozen=True)
class Transpose(kit.Attributes):
    """With `layout` a front end inserted it to convert the model's layout to NHWC, or back."""

    permutation: tuple[int, ...]
    layout: bool = False


def _permutation(op: kit.Operator[Transpose], rank: int) -> tuple[int, ...]:
    axes = tuple(kit.resolve_axis(axis, rank) for axis in op.attributes.permutation)
    if sorted(axes) != list(range(rank)):
        raise ValueError(f"{list(axes)} does not permute {rank} dimensions")
    return axes


def _infer(op: kit.Operator[Transpose]) -> kit.TensorTypes:
    x = op.x
    axes = _permutation(op, len(x.shape))
    return (kit.TensorType(tuple(x.shape[axis] for axis in axes), x.dtype),)


def _axes(op: kit.Operator[Transpose]) -> tuple[kit.Axis, ...]:
    """Every axis, wherever it comes from."""
    permutation = _permutation(op, len(op.x.shape))
    return tuple(kit.Axis(axis, (kit.Reach(source),)) for axis, source in enumerate(permutation))


def _reference(op: kit.Operator[Transpose], inputs: kit.Inputs) -> kit.Arrays:
    return (np.transpose(inputs[0], _permutation(op, inputs[0].ndim)),)


def _copies(op: kit.Operator[Transpose]) -> tuple[StridedCopy, ...]:
    x, y = op.x, op.y
    strides = row_major(x.shape)
    reads = [strides[axis] for axis in _permutation(op, len(x.shape))]
    return strided_copy(y.shape, reads, row_major(y.shape), x.dtype.size_bytes)


def _select(op: kit.Operator[Transpose], core: kit.Core) -> kit.Kernel:
    return copies_kernel(op, _copies(op))


def _aliases(op: kit.Operator[Transpose]) -> tuple[kit.Alias, ...]:
    x = op.x
    moved = [axis for axis in _permutation(op, len(x.shape)) if x.shape[axis] > 1]
    return (kit.Alias(op.y.name, op.x.name),) if moved == sorted(moved) else ()


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    return kit.ReadOp(Transpose(node.integers(1)), (0,))


def _write(op: kit.Operator[Transpose]) -> kit.WrittenOp:
    permutation = kit.int32_constant("permutation", op.attributes.permutation)
    return kit.WrittenOp("TRANSPOSE", "TransposeOptions", extra_inputs=(permutation,), version=2)


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 6))
    shape = kit.sample_shape(rng, rank)
    axes = tuple(int(axis) for axis in rng.permutation(rank))
    x = kit.Tensor("x", shape, *kit.sample_type(rng))
    written = tuple(axis - rank if rng.random() < 0.2 else axis for axis in axes)
    return kit.sample("transpose", Transpose(written), x)


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="transpose",
    attributes=Transpose,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("TRANSPOSE",), _read, _write),
    aliases=_aliases,
    axes=_axes,
    types=frozenset(kit.DType),
    limits="any type, at most 6 dimensions; the permutation is constant",
)

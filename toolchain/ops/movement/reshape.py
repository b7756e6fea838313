"""Reshape: the same bytes under another shape. The output is a view of the input.

TFLite RESHAPE, SQUEEZE and EXPAND_DIMS. Any element type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.movement.copies import strided_copy
from toolchain.ops.movement.kernels import copies_kernel


@dataclass(frozen=True)
class Reshape(kit.Attributes):
    """`shape` of the output, every dimension known."""

    shape: tuple[int, ...]


def _infer(op: kit.Operator[Reshape]) -> kit.TensorTypes:
    x, shape = op.x, op.attributes.shape
    if math.prod(shape) != x.elements:
        raise ValueError(f"{x.elements} elements do not fill the shape {list(shape)}")
    return (kit.TensorType(shape, x.dtype),)


def _reference(op: kit.Operator[Reshape], inputs: kit.Inputs) -> kit.Arrays:
    return (inputs[0].reshape(op.attributes.shape),)


def _axes(op: kit.AnyOperator) -> tuple[kit.Axis, ...]:
    """The axes of which an index is as many bytes, one behind the other, as some of an axis of the
    input: the same axis, one that is split in two, or two that are merged."""
    source, target = op.x.shape, op.y.shape

    def along(axis: int, other: int) -> kit.Axis | None:
        ahead = math.prod(target[:axis])
        if target[axis] == 1 or source[other] == 1 or ahead != math.prod(source[:other]):
            return None
        size, inner = math.prod(target[axis + 1 :]), math.prod(source[other + 1 :])
        if size % inner and inner % size:
            return None

        def block(part: kit.Part) -> Reshape:
            return Reshape((*target[:axis], part.length, *target[axis + 1 :]))

        many, few = max(size // inner, 1), max(inner // size, 1)
        return kit.Axis(axis, (kit.Reach(other, many, max(many, few), 0, few, few > 1),), block)

    pairs = ((axis, other) for axis in range(len(target)) for other in range(len(source)))
    return tuple(split for axis, other in pairs if (split := along(axis, other)) is not None)


def _select(op: kit.AnyOperator, core: kit.Core) -> kit.Kernel:
    x = op.x
    copies = strided_copy((x.elements,), (1,), (1,), x.dtype.size_bytes)
    return copies_kernel(op, copies)


def _aliases(op: kit.AnyOperator) -> tuple[kit.Alias, ...]:
    return (kit.Alias(op.y.name, op.x.name),)


def squeezed(data: kit.Array, options: Any) -> kit.Array:
    """The shape without the axes that SQUEEZE's options name; if they name none, without all of
    length 1.

    Raises ValueError for an axis that does not exist or is longer than 1.
    """
    axes = () if options is None or options.squeezeDims is None else options.squeezeDims
    return np.squeeze(data, tuple(int(axis) for axis in axes) or None)


def _target(node: kit.TfliteNode) -> tuple[int, ...]:
    """The shape asked for: of RESHAPE its second input or its option, one -1 in it left open.

    EXPAND_DIMS and SQUEEZE put axes into the input's shape, or leave them out.
    """
    x, shape = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
    if x is not None and node.builtin == "EXPAND_DIMS":
        axis = int(node.constant(1).reshape(-1)[0])
        return np.expand_dims(np.broadcast_to(np.False_, x.shape), axis).shape
    if x is not None and node.builtin == "SQUEEZE":
        options = node.options if node.has_options else None
        return squeezed(np.broadcast_to(np.False_, x.shape), options).shape
    wanted: Sequence[int] = ()
    if node.builtin == "RESHAPE" and shape is not None and shape.constant is not None:
        wanted = [int(size) for size in shape.constant.reshape(-1)]
    elif node.builtin == "RESHAPE" and shape is None and node.has_options:
        wanted = [int(size) for size in node.options.newShape]
    if x is None or -1 not in wanted:
        declared = node.outputs[0].shape
        if not wanted and x is not None and shape is not None and math.prod(declared) != x.elements:
            node.constant(1)  # where it is computed, the file's shape is not the result's
        return tuple(wanted) if wanted else declared
    known = math.prod(size for size in wanted if size != -1)
    return tuple(x.elements // known if size == -1 else size for size in wanted)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    x, y = node.inputs[0], node.outputs[0]
    if node.builtin == "EXPAND_DIMS" and x is not None and x.quantisation != y.quantisation:
        raise node.unsupported(
            f"{x.name!r} and {y.name!r} are quantised differently",
            "put a quantize operator between them",
        )
    shape = (1,) if node.builtin == "RESHAPE" else ()
    return kit.ReadOp(Reshape(_target(node)), (0,), ignored=shape)


def _write(op: kit.Operator[Reshape]) -> kit.WrittenOp:
    """As SQUEEZE or EXPAND_DIMS where a leading dimension of 1 goes or comes, else as RESHAPE."""
    shape, before = op.attributes.shape, op.x.shape
    if before == (1, *shape):
        return kit.WrittenOp("SQUEEZE", "SqueezeOptions", {"squeezeDims": [0]})
    if shape == (1, *before):
        axis = kit.int32_constant("axis", np.array(0))
        return kit.WrittenOp("EXPAND_DIMS", "ExpandDimsOptions", extra_inputs=(axis,))
    options = {"newShape": list(shape)}
    return kit.WrittenOp(
        "RESHAPE", "ReshapeOptions", options, (kit.int32_constant("shape", shape),)
    )


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = kit.sample_shape(rng, int(rng.integers(1, 5)))
    dtype, quantisation = kit.sample_type(rng)
    choices = [(math.prod(shape),), (*shape, 1), (1, *shape), (*shape[::-1],)]
    if shape[0] == 1:
        choices.append(shape[1:])
    target = choices[int(rng.integers(len(choices)))]
    x = kit.Tensor("x", shape, dtype, quantisation)
    return kit.sample("reshape", Reshape(target), x)


SPEC = kit.Form(
    quantised=kit.STORED,
    kind="reshape",
    attributes=Reshape,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _read, _write),
    aliases=_aliases,
    axes=_axes,
    types=frozenset(kit.DType),
    limits="any type; the shape is fixed when compiling",
)

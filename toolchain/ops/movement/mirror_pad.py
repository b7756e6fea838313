"""Mirror pad: surround the input with its own reflection.

TFLite MIRROR_PAD, modes REFLECT (the border is not repeated) and SYMMETRIC (it is). Any element
type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit

MAX_AXES = kit.defined("include/thimble_data.h", "THIMBLE_MIRROR_MAX_AXES")
"""Axes of `thimble_mirror_pad`."""
_AXIS = "thimble_mirror_axis"


@dataclass(frozen=True)
class MirrorPad(kit.Attributes):
    """`paddings`: elements before and after, for each dimension."""

    paddings: tuple[tuple[int, int], ...]
    symmetric: bool = False


@dataclass(frozen=True)
class Axis:
    """`size` elements, `before` reflected ones ahead of them, `count` in all; bytes between two."""

    size: int
    before: int
    count: int
    stride: int


def _infer(op: kit.Operator[MirrorPad]) -> kit.TensorTypes:
    x, attributes = op.x, op.attributes
    if len(attributes.paddings) != len(x.shape):
        raise ValueError(f"{len(attributes.paddings)} paddings for {len(x.shape)} dimensions")
    for size, pair in zip(x.shape, attributes.paddings, strict=True):
        if min(pair) < 0 or max(pair) > size - (not attributes.symmetric):
            raise ValueError(f"padding {pair} reflects more than a dimension of {size}")
    sizes = zip(x.shape, attributes.paddings, strict=True)
    return (kit.TensorType(tuple(d + before + after for d, (before, after) in sizes), x.dtype),)


def _reference(op: kit.Operator[MirrorPad], inputs: kit.Inputs) -> kit.Arrays:
    attributes = op.attributes
    if attributes.symmetric:
        return (np.pad(inputs[0], attributes.paddings, mode="symmetric"),)
    return (np.pad(inputs[0], attributes.paddings, mode="reflect"),)


def _axes(op: kit.Operator[MirrorPad]) -> tuple[tuple[Axis, ...], int]:
    """Axes around a run of contiguous bytes, neighbours that are not padded merged."""
    x, paddings = op.x, op.attributes.paddings
    run = x.dtype.size_bytes
    axes: list[Axis] = []
    for axis in reversed(range(len(x.shape))):
        size, (before, after) = x.shape[axis], paddings[axis]
        stride = math.prod(x.shape[axis + 1 :]) * x.dtype.size_bytes
        if before or after:
            axes.append(Axis(size, before, size + before + after, stride))
        elif not axes:
            run *= size
        elif axes[-1].size == axes[-1].count:
            axes[-1] = Axis(axes[-1].size * size, 0, axes[-1].size * size, axes[-1].stride)
        elif size > 1:
            axes.append(Axis(size, 0, size, stride))
    return tuple(reversed(axes)), run


def _select(op: kit.Operator[MirrorPad], core: kit.Core) -> kit.Kernel:
    axes, run = _axes(op)
    if len(axes) > MAX_AXES:
        raise op.refused(f"more than {MAX_AXES} dimensions")
    params = kit.Struct(
        "thimble_mirror_pad_params",
        {
            "axes": kit.Items(_AXIS, tuple(map(_axis, axes))) if axes else kit.NULL,
            "axis_count": len(axes),
            "run_bytes": run,
            "symmetric": int(op.attributes.symmetric),
        },
    )
    call = kit.Call(
        "thimble_mirror_pad", {"params": params, "source": kit.Input(0), "target": kit.Output(0)}
    )
    runs = math.prod(axis.count for axis in axes)
    return kit.Kernel(
        (call,),
        _extents,
        find_terms=lambda: {
            "call": 1.0,
            "run": runs,
            "place": runs * len(axes),
            "run word": runs * (run // 4),
            "run byte": runs * (run % 4),
        },
    )


def _axis(axis: Axis) -> kit.Struct:
    counts = {"size": axis.size, "before": axis.before, "count": axis.count}
    return kit.Struct(_AXIS, counts | {"stride": axis.stride})


def _extents(touched: kit.Touched) -> kit.Extents:
    """The places that `reflect` gives along each axis."""
    call, run_bytes = touched.call, touched.call["params.run_bytes"]
    symmetric = call["params.symmetric"]
    begin, last, written = 0, 0, run_bytes
    for number in range(call["params.axis_count"]):
        size, before, count, stride = (
            call[f"params.axes.{number}.{name}"] for name in ("size", "before", "count", "stride")
        )
        places = np.arange(count, dtype=np.int64) - before
        beyond = 2 * size - 2 - places + symmetric
        places = np.where(places < 0, -places - symmetric, places)
        places = np.where(np.arange(count) - before < size, places, beyond)
        steps = places * stride
        begin, last = begin + int(steps.min()), last + int(steps.max())
        written *= count
    return kit.Extents({0: kit.Extent(begin, last + run_bytes)}, {0: kit.whole(written)})


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    paddings = tuple((int(a), int(b)) for a, b in node.constant(1).reshape(-1, 2))
    spare = tuple(range(2, len(node.inputs)))
    return kit.ReadOp(MirrorPad(paddings, node.options.mode == "SYMMETRIC"), (0,), ignored=spare)


def _write(op: kit.Operator[MirrorPad]) -> kit.WrittenOp:
    attributes = op.attributes
    paddings = kit.int32_constant("paddings", np.array(attributes.paddings))
    mode = "SYMMETRIC" if attributes.symmetric else "REFLECT"
    return kit.WrittenOp("MIRROR_PAD", "MirrorPadOptions", {"mode": mode}, (paddings,))


def _sample(rng: np.random.Generator) -> kit.Graph:
    rank = int(rng.integers(1, 5))
    shape = kit.sample_shape(rng, rank, 600)
    symmetric = bool(rng.random() < 0.5)
    limits = [min(size if symmetric else size - 1, 4) for size in shape]
    paddings = tuple(
        (int(rng.integers(0, limit + 1)), int(rng.integers(0, limit + 1)))
        if rng.random() < 0.6
        else (0, 0)
        for limit in limits
    )
    x = kit.Tensor("x", shape, *kit.sample_type(rng))
    return kit.sample("mirror_pad", MirrorPad(paddings, symmetric), x, name="mirror")


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="mirror_pad",
    attributes=MirrorPad,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(("MIRROR_PAD",), _read, _write),
    types=frozenset(kit.DType),
    limits="any type, at most 6 dimensions; paddings are constant",
)

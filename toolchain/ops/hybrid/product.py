"""BATCH_MATMUL of float rows and int8 matrices: LiteRT's `EvalHybrid` of batch_matmul.cc.

Each row is quantised by itself. A sum is multiplied by the product of its scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toolchain.ops import kit
from toolchain.ops.arithmetic.dynamic_range import Range
from toolchain.ops.hybrid.kernels import Images, images_call, images_extents, product_constants
from toolchain.ops.hybrid.sums import (
    REMEDY,
    SYMMETRIC,
    centred,
    hybrid_form,
    in_float32,
    random_range,
    range_asked,
)
from toolchain.ops.matmul.common import BatchMatMul

X, Y = 0, 1


@dataclass(frozen=True)
class HybridMatMul(BatchMatMul):
    """`range`: how rows are quantised, SYMMETRIC or ASYMMETRIC. `adjoint_x` is never set."""

    range: Range = Range.SYMMETRIC


def _columns(op: kit.Operator[HybridMatMul]) -> kit.Tensor:
    """The matrices as [batches, columns, depth], with scales of the columns or one."""
    y = op.input(Y)
    data = kit.constant_of(y)
    data = data if op.attributes.adjoint_y else np.swapaxes(data, -1, -2)
    data = np.ascontiguousarray(data).reshape(-1, *data.shape[-2:])
    axis = 1 if y.q.per_channel else None
    q = kit.Quantisation(y.q.scales, y.q.zero_points, axis)
    return replace(y, shape=data.shape, constant=data, quantisation=q)


def _reference(op: kit.Operator[HybridMatMul], inputs: kit.Inputs) -> kit.Arrays:
    x, y, adjoint = (
        inputs[X].astype(np.float32),
        inputs[Y].astype(np.int64),
        op.attributes.adjoint_y,
    )
    stored, steps = centred(x.reshape(-1, x.shape[-1]), op.attributes.range)
    right = np.swapaxes(y, -1, -2) if adjoint else y
    sums = in_float32(stored.reshape(x.shape) @ right)
    scales = np.array(op.input(Y).q.scales, np.float32)
    return (sums * (steps.reshape(*x.shape[:-1], 1) * scales),)


def _select(op: kit.Operator[HybridMatMul], core: kit.Core) -> kit.Kernel:
    """A call for all rows, or for those that meet each matrix."""
    x, z, matrices = op.input(X), op.y, _columns(op)
    (rows, depth), columns = x.shape[-2:], z.shape[-1]
    batch = z.shape[:-2]

    def numbers(shape: tuple[int, ...]) -> list[int]:
        """For each matrix of the output, that of the operand."""
        count = math.prod(shape[:-2])
        indices = np.arange(count).reshape(shape[:-2])
        return [int(number) for number in np.broadcast_to(indices, batch).reshape(-1)]

    def matrix(number: int) -> kit.Tensor:
        data = kit.constant_of(matrices)[number]
        return replace(
            matrices,
            shape=data.shape,
            constant=data,
            quantisation=replace(matrices.q, axis=None if matrices.q.axis is None else 0),
        )

    parts = list(zip(numbers(x.shape), numbers(op.input(Y).shape), strict=True))
    if matrices.shape[0] == 1:
        rows, parts = rows * len(parts), [(0, 0)]
    calls: list[kit.Call] = []
    constants: dict[int, tuple[kit.Constant, ...]] = {}
    for place, (index, number) in enumerate(parts):
        name = "" if len(parts) == 1 else f"_{number}"
        images = Images(
            rows,
            op.attributes.range,
            kit.Output(0, at=place * rows * columns),
            kit.Input(X, at=index * rows * depth),
            kit.Scratch(),
            name,
        )
        weights = matrix(number)
        calls.append(images_call(op, weights, core, images))
        constants.setdefault(number, product_constants(weights, core, name=name))
    return kit.Kernel(
        tuple(calls),
        _extents,
        tuple(one for group in constants.values() for one in group),
        scratch_bytes=depth,
    )


def _extents(touched: kit.Touched) -> kit.Extents:
    parts = [images_extents(replace(touched, calls=(call,))) for call in touched.calls]
    constants: dict[str, int] = {}
    for one in parts:
        constants |= one.constants
    return kit.Extents(
        kit.joined(pair for one in parts for pair in one.inputs.items()),
        kit.joined(pair for one in parts for pair in one.outputs.items()),
        constants,
        scratch=max(one.scratch for one in parts),
        largest=max(one.largest for one in parts),
    )


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    x, y = node.inputs[X], node.inputs[Y]
    if x is None or y is None or x.dtype is not kit.DType.FLOAT32 or y.quantisation is None:
        raise node.unsupported("an operand that is not float32 beside int8 matrices", REMEDY)
    node.constant(Y)
    options = node.options
    if options.adjX:
        raise node.unsupported(
            "its float operand is transposed beside int8 matrices", "transpose it before"
        )
    if any(y.q.zero_points):
        raise node.unsupported("int8 matrices with a zero point", SYMMETRIC)
    columns = len(y.shape) - (2 if options.adjY else 1)
    if y.q.per_channel and y.q.axis != columns:
        raise node.unsupported(
            "scales of another dimension than the columns", "quantise it per tensor or per column"
        )
    for tensor in (x, y):
        if sum(size > 1 for size in tensor.shape[:-2]) > 1:
            raise node.unsupported(
                f"{tensor.name!r} has several batch dimensions, where LiteRT's kernel takes the "
                "scales of other rows",
                "reshape them to one",
            )
    attributes = HybridMatMul(adjoint_y=bool(options.adjY), range=range_asked(node))
    return kit.ReadOp(attributes, (X, Y))


def _write(op: kit.Operator[HybridMatMul]) -> kit.WrittenOp:
    options = {
        "adjX": op.attributes.adjoint_x,
        "adjY": op.attributes.adjoint_y,
        "asymmetricQuantizeInputs": op.attributes.range is Range.ASYMMETRIC,
    }
    return kit.WrittenOp("BATCH_MATMUL", "BatchMatMulOptions", options, version=4)


def _sample(
    sample: Callable[[np.random.Generator], kit.Graph],
) -> Callable[[np.random.Generator], kit.Graph]:
    def made(rng: np.random.Generator) -> kit.Graph:
        graph = sample(rng)
        (op,) = graph.ops
        assert isinstance(op.attributes, BatchMatMul)
        adjoint = op.attributes.adjoint_y
        x, z = graph.tensors["x"], graph.tensors["z"]
        rows, columns = z.shape[-2:]
        depth = x.shape[-2] if op.attributes.adjoint_x else x.shape[-1]
        batch = (int(rng.integers(1, 4)),) if len(z.shape) > 2 else ()
        leading = batch if rng.random() < 0.5 else (1,) * len(batch)
        shape = (*leading, columns, depth) if adjoint else (*leading, depth, columns)
        count = columns if rng.random() < 0.5 else 1
        scales = tuple(float(np.float32(one)) for one in rng.uniform(0.001, 0.02, count))
        axis = len(shape) - (2 if adjoint else 1) if count > 1 else None
        q = kit.Quantisation(scales, (0,) * count, axis)
        y = kit.constant_sample("y", rng.integers(-127, 128, shape).astype(np.int8), q)
        attributes = HybridMatMul(adjoint_y=adjoint, range=random_range(rng))
        x = replace(x, shape=(*batch, rows, depth))
        return kit.sample("batch_matmul", attributes, x, y, outputs=("z",), name=op.name)

    return made


def hybrid_matmul(plain: kit.Form[Any]) -> kit.Form[Any]:
    """The form of a float `batch_matmul` whose second operand is int8."""
    return hybrid_form(
        plain,
        attributes=HybridMatMul,
        reference=_reference,
        select=_select,
        sample=_sample(plain.sample),
        axes=lambda op: (),
        tflite=kit.TfliteBinding(("BATCH_MATMUL",), _read, _write),
        limits="float32 with constant int8 matrices, as LiteRT's hybrid kernel",
    )

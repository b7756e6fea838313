"""Kernels of batched matrix products: their calls, the bytes these touch, and cost terms."""

from __future__ import annotations

import math

from toolchain.ir import DType, Graph, Op
from toolchain.ops.arithmetic.requant import requant
from toolchain.ops.extents import Extent, Extents, round_up, whole, widths
from toolchain.ops.kernel import (
    Argument,
    Call,
    Input,
    Kernel,
    Output,
    SafeOverlap,
    Scratch,
    Struct,
    Terms,
    Touched,
    numbers,
)
from toolchain.ops.matmul.common import ProductShape, product_shape

SUMS = 2
"""The input of a partial product with the sums of the blocks before it."""


def product_kernel(op: Op, graph: Graph, function: str, factor: tuple[int, int]) -> Kernel:
    """A product of int8 or int16 matrices.

    `factor` is a multiplier and its shift, as the kernel takes it. Raises UnsupportedError for too
    many batch dimensions.
    """
    y = graph.output(op)
    narrow = y.dtype is DType.INT8
    arguments: dict[str, Argument] = {"shape": _integer_shape(op, graph, factor)}
    if narrow:
        arguments["requant"] = requant(y.q.zero_point, -128, 127)
    arguments |= {**_matrices(), "scratch": Scratch(), "output": Output(0)}
    call = Call(function, arguments)
    return Kernel(
        (call,),
        _extents,
        scratch_bytes=column_bytes(call),
        find_terms=(lambda: product_terms(call)) if narrow else None,
    )


def partial_product_kernel(op: Op, graph: Graph) -> Kernel:
    """int32 sums over a part of the inner dimension. Raises UnsupportedError as `product_kernel`
    does.
    """
    arguments: dict[str, Argument] = {"shape": _integer_shape(op, graph), **_matrices()}
    arguments |= {"scratch": Scratch(), "sums": Input(SUMS), "output": Output(0)}
    call = Call("thimble_partial_matmul_s8", arguments)
    added = graph.output(op).elements * bool(op.inputs[SUMS])
    return Kernel(
        (call,),
        _extents,
        scratch_bytes=column_bytes(call),
        # Each sum is read just before it is written, column by column.
        find_overlaps=lambda: (SafeOverlap(SUMS, exact=True),) if added else (),
        find_terms=lambda: {**product_terms(call), "added": added},
    )


def float_product_kernel(op: Op, graph: Graph) -> Kernel:
    """A product of float32 matrices. Raises UnsupportedError for too many dimensions."""
    shape = product_shape(op, graph)
    members = _sizes(shape) | {
        name: Struct("thimble_matrix_f32", _steps(shape, name)) for name in "xy"
    }
    params = Struct("thimble_matmul_f32_params", members)
    call = Call("thimble_batch_matmul_f32", {"params": params, **_matrices(), "output": Output(0)})
    return Kernel((call,), _extents)


def _matrices() -> dict[str, Argument]:
    return {"x": Input(0), "y": Input(1)}


def _integer_shape(op: Op, graph: Graph, factor: tuple[int, int] | None = None) -> Struct:
    """`thimble_matmul_shape`; without a factor where sums are not scaled."""
    shape = product_shape(op, graph)
    members = _sizes(shape)
    for name, operand in zip("xy", (0, 1), strict=True):
        zero_point = {"zero_point": graph.input(op, operand).q.zero_point}
        members[name] = Struct("thimble_matmul_operand", _steps(shape, name) | zero_point)
    if factor is not None:
        members |= dict(zip(("multiplier", "code"), factor, strict=True))
    return Struct("thimble_matmul_shape", members)


def _sizes(shape: ProductShape) -> dict[str, Argument]:
    return {
        "batch": numbers(shape.batch),
        "rows": shape.rows,
        "depth": shape.depth,
        "columns": shape.columns,
    }


def _steps(shape: ProductShape, name: str) -> dict[str, Argument]:
    """Of the operand x or y."""
    matrix = shape.x if name == "x" else shape.y
    return {"outer": matrix.outer, "inner": matrix.inner, "batch": numbers(matrix.batch)}


def column_bytes(call: Call) -> int:
    """A column of y, widened to int16."""
    return 2 * round_up(call["shape.depth"], 4)


def _extents(touched: Touched) -> Extents:
    """An operand's last element is as far as its steps lead."""
    call, (width, output_width) = touched.call, widths(touched.call.function)
    floats = width == 4
    shape = "params" if floats else "shape"
    batch, depth = call.row(f"{shape}.batch"), call[f"{shape}.depth"]

    def operand(name: str, outer: int) -> Extent:
        steps = f"{shape}.{name}"
        last = (outer - 1) * call[f"{steps}.outer"] + (depth - 1) * call[f"{steps}.inner"]
        strides = call.row(f"{steps}.batch")
        last += sum((n - 1) * step for n, step in zip(batch, strides, strict=True))
        return whole(last + 1, width)

    rows, columns = call[f"{shape}.rows"], call[f"{shape}.columns"]
    read = {0: operand("x", rows), 1: operand("y", columns)}
    elements = math.prod(batch) * rows * columns
    if call.find("sums") is None:
        return Extents(
            read,
            {0: whole(elements, output_width)},
            scratch=0 if floats else column_bytes(call),
        )
    sums = whole(elements, 4)
    if touched.has(SUMS):
        read[SUMS] = sums
    return Extents(read, {0: sums}, scratch=column_bytes(call))


def product_terms(call: Call) -> Terms:
    """Of `thimble_batch_matmul_s8` and `thimble_fully_connected_computed_s8`.

    Each column of y is widened once and then meets the rows of x, two at a time where these lie
    element by element.
    """
    depth, rows, columns = (call[f"shape.{name}"] for name in ("depth", "rows", "columns"))
    batches = math.prod(call.row("shape.batch"))
    outputs = batches * rows * columns
    widened, words, rest = batches * columns, depth // 4, depth % 4
    strided = "strided " if call["shape.y.inner"] > 1 else ""
    terms = {
        "call": 1.0,
        "batch": batches,
        "column": widened,
        f"{strided}column word": widened * words,
        "column rest": widened * bool(rest),
    }
    if call["shape.x.inner"] > 1:
        return terms | {
            "output": outputs,
            "strided word": outputs * words,
            "strided rest": outputs * bool(rest),
        }
    pairs, single = widened * (rows // 2), widened * (rows % 2)
    return terms | {
        "pair": pairs,
        "pair word": pairs * words,
        "pair rest": pairs * bool(rest),
        "output": single,
        "word": single * words,
        "rest": single * bool(rest),
    }

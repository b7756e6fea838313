"""Parts of the kernels of products of two matrices."""

from __future__ import annotations

import math

from toolchain.ops import kit
from toolchain.ops.matmul.common import BatchMatMul, ProductShape, product_shape


def matrices() -> dict[str, kit.Argument]:
    """The operands."""
    return {"x": kit.Input(0), "y": kit.Input(1)}


def integer_shape(
    op: kit.Operator[BatchMatMul], factor: tuple[int, int] | None = None
) -> kit.Struct:
    """`thimble_matmul_shape`; without a factor where sums are not scaled."""
    shape = product_shape(op)
    members = sizes_of(shape)
    for name, operand in zip("xy", (0, 1), strict=True):
        zero_point = {"zero_point": op.input(operand).q.zero_point}
        members[name] = kit.Struct("thimble_matmul_operand", steps_of(shape, name) | zero_point)
    if factor is not None:
        members |= dict(zip(("multiplier", "code"), factor, strict=True))
    return kit.Struct("thimble_matmul_shape", members)


def sizes_of(shape: ProductShape) -> dict[str, kit.Argument]:
    """Batches, rows, depth and columns."""
    return {
        "batch": kit.numbers(shape.batch),
        "rows": shape.rows,
        "depth": shape.depth,
        "columns": shape.columns,
    }


def steps_of(shape: ProductShape, name: str) -> dict[str, kit.Argument]:
    """Steps of the operand x or y."""
    matrix = shape.x if name == "x" else shape.y
    return {"outer": matrix.outer, "inner": matrix.inner, "batch": kit.numbers(matrix.batch)}


def column_bytes(call: kit.Call) -> int:
    """A column of y, widened to int16."""
    return 2 * kit.round_up(call["shape.depth"], 4)


def extents_of_product(
    touched: kit.Touched, shape: str, element_bytes: int, output_bytes: int, scratch_bytes: int
) -> kit.Extents:
    """The bytes that a product by the struct at `shape` touches. An operand's last element is as
    far as its steps lead.
    """
    call = touched.call
    batch, depth = call.row(f"{shape}.batch"), call[f"{shape}.depth"]

    def operand(name: str, outer: int) -> kit.Extent:
        steps = f"{shape}.{name}"
        last = (outer - 1) * call[f"{steps}.outer"] + (depth - 1) * call[f"{steps}.inner"]
        strides = call.row(f"{steps}.batch")
        last += sum((n - 1) * step for n, step in zip(batch, strides, strict=True))
        return kit.whole(last + 1, element_bytes)

    rows, columns = call[f"{shape}.rows"], call[f"{shape}.columns"]
    return kit.Extents(
        {0: operand("x", rows), 1: operand("y", columns)},
        {0: kit.whole(math.prod(batch) * rows * columns, output_bytes)},
        scratch=scratch_bytes,
    )


def product_terms(call: kit.Call) -> kit.Terms:
    """Terms of `thimble_batch_matmul_s8` and `thimble_fully_connected_computed_s8`.

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

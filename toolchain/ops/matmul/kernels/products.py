"""Parts of the kernels of products of two matrices."""

from __future__ import annotations

import math

from toolchain.ops import kit
from toolchain.ops.matmul.common import BatchMatMul, matmul_depth

_BATCH_DIMS = kit.defined("include/thimble_matmul.h", "THIMBLE_MATMUL_BATCH_DIMS")


def product_shape(
    op: kit.Operator[BatchMatMul], factor: tuple[int, int] | None = None
) -> kit.Struct:
    """The struct of x of [batch, rows, depth] times y of [batch, depth, columns]:
    `thimble_matmul_shape`, without a factor where sums are not scaled; of float32
    `thimble_matmul_f32_params`. Steps are in elements: `outer` along the output's rows (for x) or
    columns (for y), `inner` along the inner dimension.

    Raises UnsupportedError for more than three batch dimensions.
    """
    x, y, z, attributes = op.x, op.input(1), op.y, op.attributes
    if len(z.shape) > 2 + _BATCH_DIMS:
        raise kit.UnsupportedError(
            f"operator {op.name!r}: {len(z.shape) - 2} batch dimensions, at most {_BATCH_DIMS}; "
            "reshape the operands"
        )
    (rows, columns), depth = z.shape[-2:], matmul_depth(op)
    batch = (1,) * (2 + _BATCH_DIMS - len(z.shape)) + z.shape[:-2]
    members: dict[str, kit.Argument] = {
        "batch": kit.numbers(batch),
        "rows": rows,
        "depth": depth,
        "columns": columns,
    }
    floats = x.dtype is kit.DType.FLOAT32
    operands = (
        ("x", x, (1, rows) if attributes.adjoint_x else (depth, 1)),
        ("y", y, (depth, 1) if attributes.adjoint_y else (1, columns)),
    )
    for name, operand, (outer, inner) in operands:
        steps = kit.numbers(_batch_steps(operand.shape, batch))
        parts: dict[str, kit.Argument] = {"outer": outer, "inner": inner, "batch": steps}
        if not floats:
            parts["zero_point"] = operand.q.zero_point
        members[name] = kit.Struct(
            "thimble_matrix_f32" if floats else "thimble_matmul_operand", parts
        )
    if factor is not None:
        members |= dict(zip(("multiplier", "code"), factor, strict=True))
    return kit.Struct("thimble_matmul_f32_params" if floats else "thimble_matmul_shape", members)


def _batch_steps(shape: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    """Elements between neighbours along each batch dimension; 0 where it is broadcast."""
    leading = (1,) * (len(batch) - (len(shape) - 2)) + shape[:-2]
    steps = []
    for index, size in enumerate(leading):
        inner = math.prod(leading[index + 1 :]) * shape[-1] * shape[-2]
        steps.append(0 if size == 1 else inner)
    return tuple(steps)


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

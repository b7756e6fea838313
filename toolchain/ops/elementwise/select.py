"""Elements of one tensor where a condition holds, else of another. TFLite SELECT and SELECT_V2.

Stored values are copied unchanged, as in `reference_ops::Select`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolchain.ops import kit
from toolchain.ops.elementwise.common import broadcast, broadcast_shape, sample_shape
from toolchain.ops.readers.onnx_elementwise import output_axes, read_plain

_CONDITION, _YES, _NO = 0, 1, 2


@dataclass(frozen=True)
class Select(kit.Attributes):
    """With `rows` a condition of one dimension chooses whole rows (SELECT); otherwise shapes
    broadcast.
    """

    rows: bool = False


def _shapes(op: kit.Operator[Select]) -> list[tuple[int, ...]]:
    """Shapes of condition, yes and no, all of the output's rank."""
    shapes = [op.input(index).shape for index in (_CONDITION, _YES, _NO)]
    if op.attributes.rows:
        shapes[0] = shapes[0] + (1,) * (len(shapes[1]) - len(shapes[0]))
    rank = max(len(shape) for shape in shapes)
    return [(1,) * (rank - len(shape)) + shape for shape in shapes]


def _infer(op: kit.Operator[Select]) -> tuple[kit.TensorType, ...]:
    condition, yes, no = (op.input(index) for index in (_CONDITION, _YES, _NO))
    if condition.dtype is not kit.DType.BOOL or yes.dtype is not no.dtype:
        raise ValueError(f"a condition {condition} chooses between {yes} and {no}")
    try:
        shape = broadcast_shape(*_shapes(op))
    except ValueError:
        raise ValueError(f"shapes do not broadcast: {condition}, {yes} and {no}") from None
    return (kit.TensorType(shape, yes.dtype),)


def _reference(op: kit.Operator[Select], inputs: Sequence[kit.Array]) -> tuple[kit.Array, ...]:
    shapes = _shapes(op)
    given = [values.reshape(shape) for values, shape in zip(inputs, shapes, strict=True)]
    y = op.y
    return (np.where(given[0], given[1], given[2]).astype(y.dtype.numpy).reshape(y.shape),)


def _select(op: kit.Operator[Select], core: kit.Core) -> kit.Kernel:
    walk = broadcast(*_shapes(op))
    moved = [walk.moves(place) for place in range(4)]
    params = {
        "size": walk.size,
        "run_bytes": op.y.dtype.size_bytes,
        "step_condition": walk.steps[_CONDITION],
        "step_yes": walk.steps[_YES],
        "step_no": walk.steps[_NO],
    }
    call = kit.Call(
        "thimble_select",
        {
            "params": kit.Struct("thimble_select_params", params),
            "condition": kit.Input(_CONDITION, steps=moved[_CONDITION]),
            "yes": kit.Input(_YES, steps=moved[_YES]),
            "no": kit.Input(_NO, steps=moved[_NO]),
            "output": kit.Output(0, steps=moved[3]),
        },
        walk.around,
    )
    return kit.Kernel((call,), _extents, find_overlaps=lambda: _overlaps(op))


def _extents(touched: kit.Touched) -> kit.Extents:
    """Pointers are moved by elements, the kernel inside by runs of bytes."""
    call, run_bytes = touched.call, touched.call["params.run_bytes"]

    def reach(name: str, pointer: kit.Pointer | None, step: int, run: int) -> kit.Extent:
        operand = call.arguments[name]
        assert isinstance(operand, kit.Input | kit.Output) and pointer is not None
        steps = dict(operand.steps)
        outer = sum((loop.count - 1) * steps.get(loop.variable, 0) for loop in call.loops)
        inner = (call["params.size"] - 1) * step * run
        return kit.Extent(0, outer * pointer.element_bytes + inner + run)

    runs = (("condition", 1), ("yes", run_bytes), ("no", run_bytes))
    read = {
        index: reach(name, touched.inputs[index], call[f"params.step_{name}"], run)
        for index, (name, run) in enumerate(runs)
    }
    return kit.Extents(read, {0: reach("output", touched.outputs[0], 1, run_bytes)})


def _overlaps(op: kit.AnyOperator) -> tuple[kit.SafeOverlap, ...]:
    """In place over an operand as large as the output."""
    y = op.y
    return tuple(
        kit.SafeOverlap(index) for index in (_YES, _NO) if op.input(index).elements == y.elements
    )


def _axes(op: kit.Operator[Select]) -> tuple[kit.Axis, ...]:
    return () if op.attributes.rows else kit.elementwise_axes(op)


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    condition, yes = node.inputs[_CONDITION], node.inputs[_YES]
    rows = node.builtin == "SELECT" and condition is not None and yes is not None
    whole = rows and condition is not None and yes is not None and condition.shape != yes.shape
    return kit.ReadOp(Select(rows=whole), (_CONDITION, _YES, _NO))


def _write(op: kit.Operator[Select]) -> kit.WrittenOp:
    if op.attributes.rows:
        return kit.WrittenOp("SELECT", "SelectOptions")
    return kit.WrittenOp("SELECT_V2", "SelectV2Options")


def _read_onnx(node: kit.OnnxNode) -> None:
    """ONNX Where."""
    rank = len(node.output_shape())
    axes = output_axes(node)
    q = node.output_quantisation()
    if node.is_constant(0):
        data = node.constant(0).data.astype(bool)
        wide = data.reshape((1,) * (rank - data.ndim) + data.shape)
        condition = node.add_constant("condition", wide.transpose(axes), None)
    else:
        condition = node.operand(0, axes)
    operands = [node.operand(index, axes, quantisation=q) for index in (_YES, _NO)]
    node.emit("select", Select(), [condition, *operands], q, axes)


def _sample(rng: np.random.Generator) -> kit.Graph:
    shape = sample_shape(rng)
    dtype, q = kit.sample_type(rng)
    rows = bool(rng.random() < 0.25) and len(shape) > 1

    def other() -> tuple[int, ...]:
        if rng.random() < 0.5:
            return shape
        return tuple(1 if rng.random() < 0.4 else d for d in shape)[int(rng.integers(2)) :]

    shapes = [shape[:1], shape, shape] if rows else [other(), other(), other()]
    constant = None
    if rng.random() < 0.3:
        constant = rng.integers(-100, 100, shapes[2]).astype(dtype.numpy)
    tensors = [
        kit.Tensor("condition", shapes[0], kit.DType.BOOL),
        kit.Tensor("yes", shapes[1], dtype, q),
        kit.Tensor("no", shapes[2], dtype, q, constant),
    ]
    return kit.sample("select", Select(rows), *tensors, q=q)


SPEC = kit.Form(
    quantised=kit.ALIKE,
    kind="select",
    attributes=Select,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    axes=_axes,
    tflite=kit.TfliteBinding(("SELECT", "SELECT_V2"), _read, _write),
    onnx=kit.OnnxBinding(
        ("Where",), _read_onnx, plain=read_plain("select", Select(), operands=3, typed_by=1)
    ),
    types=frozenset(kit.DType),
    limits="any type, any broadcast; operands quantised alike",
)

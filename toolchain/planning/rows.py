"""An input that arrives by rows: the operator that takes them, in front of the graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from toolchain.errors import InputError
from toolchain.ir import DType, Graph, Op, Pushed, Tensor
from toolchain.ir.names import GraphNames
from toolchain.ops import spec_of
from toolchain.ops.movement.input_rows import KIND, InputRows
from toolchain.ops.movement.reshape import Reshape
from toolchain.ops.movement.transpose import Transpose
from toolchain.partition.region import axes_of

_MOST_ROWS = 65_535
"""The generated code counts them in 16 bits."""
_WHOLE_INPUT = "leave out --stream-input: the input is then whole in RAM"


@dataclass(frozen=True)
class _Rows:
    """The rows of an input: indices along `axis` of the input seen in `shape`."""

    shape: tuple[int, ...]
    axis: int


def stream_input(graph: Graph, name: str = "") -> Graph:
    """The graph with an `input_rows` between an input and all that reads it.

    Rows are the indices of the first axis that is longer than 1: rows of an image, frames of a
    spectrogram. `name` is needed where several inputs have rows. Raises InputError where the input
    has no rows, or the graph keeps state, with the reason.
    """
    if graph.states:
        raise InputError(
            f"{graph.name} keeps state from run to run, which --stream-input does not take: its "
            "input is one frame of a sequence already",
            remedies=[_WHOLE_INPUT],
        )
    if name and name not in graph.inputs:
        known = ", ".join(graph.inputs)
        raise InputError(f"{graph.name} has no input {name!r} to stream; it has: {known}")
    rows_of: dict[str, _Rows] = {}
    refused: dict[str, str] = {}
    for each in (name,) if name else graph.inputs:
        rows = _rows(graph, each)
        if isinstance(rows, str):
            refused[each] = rows
        else:
            rows_of[each] = rows
    if not rows_of:
        raise InputError(
            f"{graph.name} has no input that can arrive by rows: "
            + "; ".join(f"{each!r} {why}" for each, why in refused.items()),
            remedies=[_WHOLE_INPUT],
        )
    if len(rows_of) > 1:
        raise InputError(
            f"{graph.name} has several inputs with rows: {', '.join(rows_of)}; one can be streamed",
            remedies=[f"--streamed-input {next(iter(rows_of))}"],
        )
    ((chosen, rows),) = rows_of.items()
    return _with_rows(graph, chosen, rows)


def _rows(graph: Graph, name: str) -> _Rows | str:
    """The rows of an input; else the reason why it has none."""
    tensor, readers = graph.tensors[name], [graph.ops[i] for i in graph.consumers[name]]
    if name in graph.outputs or not readers:
        return "is read by no operator" if not readers else "is an output, too"
    shapes = {tensor.shape}
    if len(tensor.shape) < 3 and all(isinstance(op.attributes, Reshape) for op in readers):
        shapes = {graph.output(op).shape for op in readers}
    shape = max(shapes, key=len)
    axis = next((at for at, size in enumerate(shape) if size > 1), None)
    if axis is None or len(shapes) > 1 or math.prod(shape[axis + 1 :]) == 1:
        return f"of {list(tensor.shape)} has no rows"
    if shape[axis] > _MOST_ROWS:
        return f"has {shape[axis]:,} rows, more than {_MOST_ROWS:,}"
    if shape == tensor.shape:
        turned = next((op.name for op in readers if isinstance(op.attributes, Transpose)), "")
        if turned:
            return f"is stored channels first, and turned by {turned!r}: convert it channels last"
        blocks = [op.name for op in readers if not _takes_rows(graph, op, name, axis)]
        if blocks:
            return f"is read whole by {blocks[0]!r}, which rows cannot be given to"
    return _Rows(shape, axis)


def _takes_rows(graph: Graph, op: Op, name: str, axis: int) -> bool:
    """Whether blocks of an operator read rows of the input."""
    reaches = [split.reaches for split in axes_of(op, graph).values()]
    reaches += [split.reaches for split in spec_of(op.kind).reductions(op, graph)]
    return any(
        operand == name and reach is not None and reach.axis == axis
        for each in reaches
        for operand, reach in zip(op.inputs, each, strict=False)
    )


def _with_rows(graph: Graph, name: str, rows: _Rows) -> Graph:
    x, names = graph.tensors[name], GraphNames.of(graph)
    made, progress = (names.tensors.fresh(f"{name} ({role})") for role in ("rows", "progress"))
    attributes = InputRows(rows.shape, rows.axis, 0, rows.shape[rows.axis])
    taker = Op(KIND, names.ops.fresh(made), (name,), (made,), attributes)
    ops = [taker, *_read_from(graph, name, made, rows)]
    tensors = [
        *graph.tensors.values(),
        Tensor(made, rows.shape, x.dtype, x.quantisation),
        Tensor(progress, (2,), DType.INT16),
    ]
    table: Mapping[str, Tensor] = {tensor.name: tensor for tensor in tensors}
    pushed = Graph(
        graph.name, table, tuple(ops), graph.inputs, graph.outputs, (), Pushed(name, progress)
    )
    return pushed.with_ops(ops)


def _read_from(graph: Graph, name: str, made: str, rows: _Rows) -> Iterator[Op]:
    """The operators, which read `made` instead of the input. Reshapes to its shape go."""
    renamed = {name: made}
    for op in graph.ops:
        shape = op.attributes.shape if isinstance(op.attributes, Reshape) else ()
        if op.inputs[0] == name and shape == rows.shape and op.outputs[0] not in graph.outputs:
            renamed[op.outputs[0]] = made
        else:
            yield replace(op, inputs=tuple(renamed.get(each, each) for each in op.inputs))

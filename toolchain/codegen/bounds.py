"""Proof, for every call of every plan, that it reads and writes only bytes of its own tensors.

A shape rule (`OpSpec.infer`) and a kernel's arguments describe the same operator independently.
`ops.extents` derives the bytes that a call touches from its arguments alone. This module compares
them with the tensors, the packed constants and the scratch of the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op, Tensor
from toolchain.ops.extents import Extent, Extents, Pointer
from toolchain.ops.kernel import Call, Kernel, Touched
from toolchain.ops.moves import Move

_INT32 = range(-(1 << 31), 1 << 31)
_SHIFTS = range(-31, 32)
"""Shifts that C defines for 32 bits. Negative ones are to the right, in kernels that shift both
ways.
"""


def check_call(op: Op, graph: Graph, kernel: Kernel, pitches: Mapping[str, int]) -> None:
    """Raise UnsupportedError unless all calls of a kernel stay within their operands.

    `pitches` gives the bytes from row to row of images that are strided views
    (`ArenaPlan.pitches`). Calls must read no byte beyond inputs, constants and scratch, and must
    write outputs completely and no more. Every number in the C text, every index and every size in
    bytes must fit int32, and every shift must be below 32.
    """
    calls = calls_at(op, kernel, pitches)
    for name, value in (pair for call in calls for pair in call.integers()):
        if value not in _INT32:
            raise _refusal(op, f"its argument {name or 'count'} = {value:,} does not fit 32 bits")
        if "shift" in name and value not in _SHIFTS:
            raise _refusal(op, f"its argument {name} = {value:,} is no shift of a word of 32 bits")
    for nested in kernel.nested:
        for number in nested.called:
            check_call(nested.graph.ops[number], nested.graph, nested.kernels[number], {})
    extents = call_extents(op, graph, kernel, pitches)
    if extents.largest not in _INT32:
        raise _refusal(
            op,
            f"walking its input takes it to position {extents.largest:,}, beyond 32 bits: check "
            "its strides, dilations and paddings",
        )
    for index, extent in extents.inputs.items():
        tensor = graph.tensors[op.inputs[index]] if index < len(op.inputs) else None
        if tensor is None:
            raise _refusal(op, f"its kernel reads input {index}, which is absent")
        if not _within(extent, tensor, pitches.get(tensor.name, 0)):
            raise _refusal(op, f"its kernel reads {_bytes(extent)} of input {_of(tensor)}")
    for index, name in enumerate(op.outputs):
        tensor, extent = graph.tensors[name], extents.outputs.get(index, Extent(0, 0))
        if not _fills(extent, tensor, pitches.get(name, 0)):
            raise _refusal(op, f"its kernel writes {_bytes(extent)} of output {_of(tensor)}")
    for constant in kernel.constants:
        read, size = extents.constants.get(constant.key, 0), constant.data.nbytes
        if read > size:
            raise _refusal(op, f"its kernel reads {read:,} bytes of {constant.key}: {size:,}")
    if extents.scratch > kernel.scratch_bytes:
        raise _refusal(
            op,
            f"its kernel needs {extents.scratch:,} bytes of scratch, and has "
            f"{kernel.scratch_bytes:,}",
        )


def call_extents(op: Op, graph: Graph, kernel: Kernel, pitches: Mapping[str, int]) -> Extents:
    """The bytes that the calls of a kernel touch, by the arguments that are printed."""
    inputs, outputs = _pointers(op, graph, pitches)
    constants = {constant.key: constant.data for constant in kernel.constants}
    return kernel.extents(Touched(calls_at(op, kernel, pitches), constants, inputs, outputs))


def calls_at(op: Op, kernel: Kernel, pitches: Mapping[str, int]) -> tuple[Call, ...]:
    """The kernel's calls if the operands in `pitches` are strided views."""
    return kernel.calls_at(*lines_of(op, pitches))


def lines_of(op: Op, pitches: Mapping[str, int]) -> tuple[int, int]:
    """Bytes from line to line of the first input and output, as `Kernel.calls_at` takes them."""
    return pitches.get(next(iter(op.inputs), ""), 0), pitches.get(op.outputs[0], 0)


def check_moves(op: Op, graph: Graph, wanted: Sequence[Move]) -> None:
    """Check an operator that only copies, as `check_call` does. Raises UnsupportedError."""
    for move in wanted:
        for name, offset in ((move.source, move.source_offset), (move.target, move.target_offset)):
            extent, tensor = Extent(offset, offset + move.size_bytes), graph.tensors[name]
            if not _within(extent, tensor, 0):
                raise _refusal(op, f"a copy touches {_bytes(extent)} of {_of(tensor)}")


def _pointers(
    op: Op, graph: Graph, pitches: Mapping[str, int]
) -> tuple[tuple[Pointer | None, ...], tuple[Pointer, ...]]:
    """Inputs and outputs as the calls see them."""

    def pointer(name: str) -> Pointer:
        return Pointer(graph.tensors[name].dtype.size_bytes, pitches.get(name, 0))

    inputs = tuple(pointer(name) if name else None for name in op.inputs)
    return inputs, tuple(map(pointer, op.outputs))


def _within(extent: Extent, tensor: Tensor, pitch: int) -> bool:
    """Whether an extent lies in the tensor; with `pitch`, whether each of its rows does."""
    if pitch and extent.lines > 1:
        line = tensor.size_bytes // tensor.shape[1]
        fits = extent.pitch == pitch and extent.lines <= tensor.shape[1]
        return fits and extent.begin >= 0 and extent.end <= line
    room = tensor.size_bytes // tensor.shape[1] if pitch else tensor.size_bytes
    return extent.begin >= 0 and extent.last <= room and extent.last in _INT32


def _fills(extent: Extent, tensor: Tensor, pitch: int) -> bool:
    """Whether all of it lies in the tensor, and all of the tensor is written."""
    if not _within(extent, tensor, pitch):
        return False
    if pitch and extent.lines > 1:
        whole = extent.begin == 0 and extent.touched is None
        return whole and extent.lines * extent.end == tensor.size_bytes
    return extent.whole and extent.last == tensor.size_bytes


def _bytes(extent: Extent) -> str:
    if extent.lines > 1:
        apart = f"{extent.lines:,} lines, {extent.pitch:,} bytes apart, "
        return f"{apart}bytes {extent.begin:,} to {extent.end:,} of each,"
    some = "" if extent.touched in (None, extent.end) else f"{extent.touched:,} of "
    return f"{some}bytes {extent.begin:,} to {extent.end:,}"


def _of(tensor: Tensor) -> str:
    return f"{tensor.name!r}, which has {tensor.size_bytes:,}"


def _refusal(op: Op, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"operator {op.name!r} ({op.kind}): {why}; the model's shapes or attributes contradict "
        "each other, so no code is generated for it. Where LiteRT or ONNX Runtime runs the model, "
        "this is a defect of Thimble: report it with the file"
    )

"""The kernel of operators that move bytes: one call of `thimble_copy_nd` per strided copy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from toolchain.ops import kit
from toolchain.ops.movement.copies import Loop, StridedCopy
from toolchain.ops.movement.copy_overlaps import copy_overlaps

FUNCTION = "thimble_copy_nd"
MOVE = "thimble_move"
_FILL = "memset"


def copies_kernel(
    op: kit.AnyOperator, copies: Sequence[StridedCopy], fill: int | None = None
) -> kit.Kernel:
    """`copies` one after the other.

    With `fill`, output 0 is filled with that byte first, so it may lie over no input.
    """
    made = tuple(copies)
    calls = tuple(_copy(copy, op) for copy in made)
    if fill is not None:
        filled: dict[str, kit.Argument] = {
            "target": kit.Output(0),
            "value": fill,
            "size_bytes": op.y.size_bytes,
        }
        calls = (kit.Call(_FILL, filled, defined=False), *calls)
    return kit.Kernel(
        calls,
        copies_extents,
        find_overlaps=lambda: copy_overlaps(op, made) if fill is None else (),
        find_terms=lambda: _terms(made),
        label=FUNCTION,
    )


def move_terms(size_bytes: int, aligned: bool, core: kit.Core) -> kit.Terms:
    """`thimble_move` of so many bytes, of words where both ends are aligned."""
    if core.mve:
        return {"call": 1.0, "block": size_bytes // 32, "vector": -(-(size_bytes % 32) // 16)}
    left = size_bytes % 32 if aligned else size_bytes
    counts = {"sixteen": left // 16, "word": left % 16 // 4, "byte": left % 4}
    if aligned:
        counts["block"] = size_bytes // 32
    return {"call": 1.0, **counts} | {f"any {name}": bool(n) for name, n in counts.items()}


def copy_source(copy: StridedCopy, op: kit.AnyOperator) -> kit.Input:
    """The pointer that the copy reads from first."""
    return kit.Input(copy.source, copy.source_offset // op.input(copy.source).dtype.size_bytes)


def copy_loops(loops: Sequence[Loop]) -> kit.Argument:
    """An array of `thimble_copy_loop`; NULL if there are no loops."""
    if not loops:
        return kit.NULL
    return kit.Items(
        "thimble_copy_loop",
        tuple(
            kit.Struct(
                "thimble_copy_loop",
                {
                    "count": loop.count,
                    "source_stride": loop.source_stride,
                    "target_stride": loop.target_stride,
                },
            )
            for loop in loops
        ),
    )


def _copy(copy: StridedCopy, op: kit.AnyOperator) -> kit.Call:
    target = op.output(copy.target)
    return kit.Call(
        FUNCTION,
        {
            "loops": copy_loops(copy.loops),
            "loop_count": len(copy.loops),
            "run_bytes": copy.run_bytes,
            "source": copy_source(copy, op),
            "target": kit.Output(copy.target, copy.target_offset // target.dtype.size_bytes),
        },
    )


def copies_extents(touched: kit.Touched) -> kit.Extents:
    """The bytes that the calls of `copies_kernel` touch: strided runs."""
    read: list[tuple[int, kit.Extent]] = []
    written: list[tuple[int, kit.Extent]] = []
    for call in touched.calls:
        target = call.arguments["target"]
        assert isinstance(target, kit.Output)
        if call.function == _FILL:
            size_bytes = call["size_bytes"]
            written.append((target.index, kit.Extent(0, size_bytes, touched=size_bytes)))
            continue
        source = call.arguments["source"]
        assert isinstance(source, kit.Input)
        pointer = touched.inputs[source.index]
        assert pointer is not None
        read.append((source.index, _runs(call, source, pointer)))
        written.append((target.index, _runs(call, target, touched.outputs[target.index])))
    return kit.Extents(kit.joined(read), kit.joined(written))


def _runs(call: kit.Call, end: kit.Input | kit.Output, pointer: kit.Pointer) -> kit.Extent:
    """Where one copy reads, or writes."""
    run_bytes = call["run_bytes"]
    strides = "source_stride" if isinstance(end, kit.Input) else "target_stride"
    begin = end.at * pointer.element_bytes
    return run_extent(begin, run_bytes, strided_loops(call, "loops", strides))


def strided_loops(call: kit.Call, path: str, strides: str) -> Iterator[tuple[int, int]]:
    """Count and stride of each `thimble_copy_loop` in the array at `path` of a call's arguments."""
    loops = call.find(path)
    for level in range(len(loops.values) if isinstance(loops, kit.Items) else 0):
        yield call[f"{path}.{level}.count"], call[f"{path}.{level}.{strides}"]


def run_extent(begin: int, run_bytes: int, loops: Iterator[tuple[int, int]]) -> kit.Extent:
    """The extent of runs of bytes, the first at `begin`. `loops` give their counts and strides in
    bytes.
    """
    end, count = begin + run_bytes, run_bytes
    for turns, stride in loops:
        step = (turns - 1) * stride
        begin, end = begin + min(step, 0), end + max(step, 0)
        count *= turns
    return kit.Extent(begin, end, touched=count)


def _terms(copies: Sequence[StridedCopy]) -> kit.Terms:
    """`thimble_copy_nd`, once for each copy."""
    names = ("plain copy", "copy", "turn", "run", "word", "byte", "lone byte")
    terms = {"call": 1.0, **dict.fromkeys(names, 0.0)}
    for copy in copies:
        runs = math.prod(loop.count for loop in copy.loops)
        if not copy.loops:
            terms["plain copy"] += 1
        else:
            terms["copy"] += 1
            terms["turn"] += math.prod(loop.count for loop in copy.loops[:-1])
        if copy.loops and copy.run_bytes == 1:
            terms["lone byte"] += runs
            continue
        terms["run"] += runs if copy.loops else 0
        terms["word"] += runs * (copy.run_bytes // 4)
        terms["byte"] += runs * (copy.run_bytes % 4)
    return terms

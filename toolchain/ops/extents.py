"""What a kernel touches: bytes of its operands, constants and scratch, by its arguments.

Every kind's `OpSpec.extents` derives them from the numbers that its template prints, and from
nothing else: not from the tensors' shapes. `codegen.bounds` compares them with the tensors. On the
host every sanitized test program may touch these bytes alone (`tests/support/host.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Core

_WIDTHS = MappingProxyType({"s8": 1, "u8": 1, "s4": 1, "s16": 2, "s32": 4, "f32": 4})


@dataclass(frozen=True)
class Extent:
    """Bytes [begin, end) of an operand, counted from its pointer.

    `lines` such runs, `pitch` bytes apart, where an image is walked line by line; between them a
    kernel may read (the rest of a word) but never writes. `touched`: how many of the bytes the
    kernel touches, where it may leave some out.
    """

    begin: int
    end: int
    pitch: int = 0
    lines: int = 1
    touched: int | None = None

    @property
    def last(self) -> int:
        """One past the last byte."""
        return (self.lines - 1) * self.pitch + self.end

    @property
    def whole(self) -> bool:
        """Whether it is one run without a gap, from the operand's start."""
        gapless = self.lines == 1 or self.pitch == self.end - self.begin
        return self.begin == 0 and gapless and self.touched in (None, self.last)


@dataclass(frozen=True)
class Extents:
    """What one call touches. Operands and constants that are left out are not touched.

    `constants`: bytes read of each. `scratch`: bytes. `largest`: no index, step or product that the
    kernel computes in int32 on its way is larger.
    """

    inputs: Mapping[int, Extent] = field(default_factory=lambda: MappingProxyType({}))
    outputs: Mapping[int, Extent] = field(default_factory=lambda: MappingProxyType({}))
    constants: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    scratch: int = 0
    largest: int = 0


@dataclass(frozen=True)
class Pointer:
    """An operand as a template sees it: bytes that its pointer steps by, and bytes from one line of
    an image to the next where they lie apart (else 0)."""

    element_bytes: int
    line: int = 0


@dataclass(frozen=True)
class Arguments:
    """What a template prints: all that extents may follow from. None: an absent operand."""

    fields: SimpleNamespace
    constants: Mapping[str, NDArray[np.generic]]
    inputs: tuple[Pointer | None, ...]
    outputs: tuple[Pointer, ...]
    core: Core

    def has(self, index: int) -> bool:
        """Whether input `index` is there; a kernel is given NULL for it otherwise."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def input_line(self, index: int = 0) -> int:
        pointer = self.inputs[index]
        return 0 if pointer is None else pointer.line


ExtentRule = Callable[[Arguments], Extents]


def whole(elements: int, element_bytes: int = 1) -> Extent:
    """`elements` of so many bytes from the operand's start."""
    return Extent(0, elements * element_bytes)


def widths(function: str) -> tuple[int, int]:
    """Bytes of an element that a C function reads, and of one that it writes, as its name says:
    `thimble_requantize_s16_s8`."""
    named = [_WIDTHS[word] for word in function.split("_") if word in _WIDTHS]
    return named[0], named[-1]


def elementwise(function: str, size: int, **constants: int) -> Extents:
    """`size` elements in, as many out."""
    read, written = widths(function)
    return Extents({0: whole(size, read)}, {0: whole(size, written)}, constants)


def window_reach(sizes: Iterable[tuple[int, int, int, int, int]]) -> int:
    """The largest coordinate that a window's walk computes; per axis the outputs, the stride, the
    window, its dilation and the padding."""
    return max(
        outputs * stride + kernel * dilation + abs(pad)
        for outputs, stride, kernel, dilation, pad in sizes
    )


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def no_call(arguments: Arguments) -> Extents:
    """Of a kind that is always a view: no kernel runs, so nothing is touched."""
    return Extents()


def copies(arguments: Arguments) -> Extents:
    """`_copies.c.j2`: strided runs of bytes."""
    wanted = arguments.fields.copies
    fill = getattr(arguments.fields, "fill", None)
    filled = None if fill is None else arguments.fields.bytes
    return Extents(
        joined((c.source, _runs(c, arguments.inputs, source=True)) for c in wanted),
        joined(
            [*((c.target, _runs(c, arguments.outputs, source=False)) for c in wanted)]
            + ([] if filled is None else [(0, Extent(0, filled, touched=filled))])
        ),
    )


def _runs(copy: Any, pointers: tuple[Pointer | None, ...], *, source: bool) -> Extent:
    """Where one copy reads, or writes: its pointer is moved by whole elements."""
    pointer = pointers[copy.source if source else copy.target]
    assert pointer is not None
    offset = copy.source_offset if source else copy.target_offset
    begin = offset // pointer.element_bytes * pointer.element_bytes
    end, count = begin + copy.run_bytes, copy.run_bytes
    for loop in copy.loops:
        step = (loop.count - 1) * (loop.source_stride if source else loop.target_stride)
        begin, end = begin + min(step, 0), end + max(step, 0)
        count *= loop.count
    return Extent(begin, end, touched=count)


def joined(found: Iterable[tuple[int, Extent]]) -> dict[int, Extent]:
    """One extent around all of an operand; their bytes are added up."""
    joined: dict[int, Extent] = {}
    for index, own in found:
        other = joined.get(index, own)
        count = own.touched if index not in joined else (own.touched or 0) + (other.touched or 0)
        joined[index] = Extent(
            min(own.begin, other.begin), max(own.last, other.last), touched=count
        )
    # What is filled first is written over.
    return {
        index: Extent(e.begin, e.end, touched=None if e.touched is None else min(e.touched, e.end))
        for index, e in joined.items()
    }


def pad(arguments: Arguments) -> Extents:
    """`pad.c.j2`: `output_bytes` are filled but for the runs, which are copied."""
    f = arguments.fields
    copy = f.copy
    runs = _runs(copy, arguments.inputs, source=True)
    inner = _runs(copy, arguments.outputs, source=False)
    start = min(inner.begin, 0)
    return Extents({0: runs}, {0: Extent(start, max(inner.end, f.output_bytes))}, largest=inner.end)


def mirror_pad(arguments: Arguments) -> Extents:
    """`thimble_mirror_pad`: the places that `reflect` gives along each axis."""
    f = arguments.fields
    begin, last, written = 0, 0, f.run_bytes
    for axis in f.axes:
        places = np.arange(axis.count, dtype=np.int64) - axis.before
        beyond = 2 * axis.size - 2 - places + f.symmetric
        places = np.where(places < 0, -places - f.symmetric, places)
        places = np.where(np.arange(axis.count) - axis.before < axis.size, places, beyond)
        steps = places * axis.stride
        begin, last = begin + int(steps.min()), last + int(steps.max())
        written *= axis.count
    return Extents({0: Extent(begin, last + f.run_bytes)}, {0: whole(written)})


def gather(arguments: Arguments) -> Extents:
    """`thimble_gather` checks every index against `count`."""
    f = arguments.fields
    return Extents(
        {
            0: whole(f.batches * f.outer * f.count, f.run_bytes),
            1: whole(f.batches * f.picks, f.index_bytes),
        },
        {0: whole(f.batches * f.outer * f.picks, f.run_bytes)},
    )


def unary(arguments: Arguments) -> Extents:
    """`_unary.c.j2`: a line, or a table of all bytes."""
    f = arguments.fields
    table = {} if f.kernel == "rescale" else {"table": 256}
    return Extents({f.operand: whole(f.size)}, {0: whole(f.size)}, table)


def binary(arguments: Arguments) -> Extents:
    """`_binary.c.j2`: loops around runs, each operand with strides of its own."""
    f = arguments.fields
    if hasattr(f, "kernel"):
        return unary(arguments)
    last = len(arguments.inputs) - 1  # NOT has one operand, and reads it as both
    width = 1 if f.function == "thimble_logical" else widths(f.function)[0]
    read = [(0, _stepped(f.shape, "stride_1", "step_1", width))]
    read.append((last, _stepped(f.shape, "stride_2", "step_2", width)))
    return Extents(joined(read), {0: _stepped(f.shape, "stride_output", "", width)})


def binary_f32(arguments: Arguments) -> Extents:
    """`binary_f32.c.j2`, as `binary`; the expression stands in the generated C."""
    shape = arguments.fields.shape
    read = [(0, _stepped(shape, "stride_1", "step_1", 4))]
    read.append((1, _stepped(shape, "stride_2", "step_2", 4)))
    return Extents(joined(read), {0: _stepped(shape, "stride_output", "", 4)})


def _stepped(shape: Any, stride: str, step: str, width: int) -> Extent:
    """An operand of a `Broadcast`; without `step` it moves on with every element."""
    moves = getattr(shape, step) if step else 1
    last, count = (shape.size - 1) * moves, shape.size if moves else 1
    for loop in shape.loops:
        last += (loop.count - 1) * getattr(loop, stride)
        count *= loop.count if getattr(loop, stride) else 1
    return Extent(0, (last + 1) * width, touched=count * width)


def select(arguments: Arguments) -> Extents:
    """`thimble_select` inside loops; pointers are moved by elements, runs by bytes."""
    f = arguments.fields

    def operand(index: int, step: int, run: int) -> Extent:
        pointer = arguments.inputs[index] if index < 3 else arguments.outputs[0]
        assert pointer is not None
        outer = sum((level.count - 1) * level.steps[index] for level in f.loops)
        return Extent(0, outer * pointer.element_bytes + (f.size - 1) * step * run + run)

    runs = (1, f.run_bytes, f.run_bytes)
    read = {index: operand(index, f.steps[index], run) for index, run in enumerate(runs)}
    return Extents(read, {0: operand(3, 1, f.run_bytes)})


def reduction(width: int, output_width: int) -> ExtentRule:
    """Kept, reduced, kept, reduced, kept elements (`thimble_reduce_shape`)."""

    def rule(arguments: Arguments) -> Extents:
        f = arguments.fields
        f = SimpleNamespace(**f.params) if hasattr(f, "params") else f
        kept = f.outer * f.middle * f.inner
        read = {0: whole(kept * f.first * f.second, width)}
        if arguments.has(1):  # the sums of the parts before
            read[1] = whole(kept, output_width)
        return Extents(read, {0: whole(kept, output_width)})

    return rule


def extremum(arguments: Arguments) -> Extents:
    """`thimble_reduce_max_s8` and `_s16`."""
    width, _ = widths(arguments.fields.function)
    return reduction(width, width)(arguments)


def arg_max(arguments: Arguments) -> Extents:
    f = arguments.fields
    lines = f.outer * f.inner
    return Extents({0: whole(lines * f.count)}, {0: whole(lines, f.index_bytes)})


def cumsum(arguments: Arguments) -> Extents:
    f = arguments.fields
    return elementwise(f.function, f.outer * f.count * f.inner)


def top_k(arguments: Arguments) -> Extents:
    f = arguments.fields
    found = f.rows * f.k
    return Extents({0: whole(f.rows * f.columns)}, {0: whole(found), 1: whole(found, 4)})


def table_s16(arguments: Arguments) -> Extents:
    """`thimble_lookup_s16`: 512 steps, and the end of the last one."""
    return elementwise("s16", arguments.fields.size, table=2 * 513)


def sigmoid_s16(arguments: Arguments) -> Extents:
    """`thimble_logistic_table_s16`, `thimble_tanh_table_s16`: 256 entries."""
    return elementwise(arguments.fields.function, arguments.fields.size, table=2 * 256)


def sized(function: str = "") -> ExtentRule:
    """A C function of so many elements: `function`, or the one that `fields` names."""
    return lambda arguments: elementwise(
        function or arguments.fields.function, arguments.fields.size
    )


def quantize(arguments: Arguments) -> Extents:
    f = arguments.fields
    return elementwise(f.function, f.size) if f.kernel in ("float", "wide") else unary(arguments)


def softmax(entry_bytes: int, function: str = "") -> ExtentRule:
    """Rows of columns, and `entries` exponentials of so many bytes."""

    def rule(arguments: Arguments) -> Extents:
        f = arguments.fields
        name = function or f.function
        tables = {"exponentials": f.entries * entry_bytes} if entry_bytes else {}
        return elementwise(name, f.rows * f.columns, **tables)

    return rule


def softmax_s16(arguments: Arguments) -> Extents:
    f = arguments.fields
    return elementwise("s16", f.rows * f.columns, exponentials=2 * 513, reciprocals=2 * 513)


def l2_normalization(arguments: Arguments) -> Extents:
    return elementwise("s8", arguments.fields.rows * arguments.fields.columns)


def layer_norm(arguments: Arguments) -> Extents:
    """A gain for each element of a row or, with `channels`, for each channel."""
    f = arguments.fields
    factors = 4 * (min(f.channels, f.rows) if f.channels else f.length)
    return elementwise("s8", f.rows * f.length, gain=factors, offset=factors)


def batch_norm(arguments: Arguments) -> Extents:
    f = arguments.fields
    return elementwise("s8", f.pixels * f.channels, gain=4 * f.channels, offset=4 * f.channels)


def _resized(f: Any, width: int, rows: tuple[int, int], columns: tuple[int, int]) -> Extents:
    """Pixels of `width` bytes from rows and columns [first, last] of each image of a batch."""
    image = f.input_height * f.input_width
    first = rows[0] * f.input_width + columns[0]
    last = (f.batches - 1) * image + rows[1] * f.input_width + columns[1]
    return Extents(
        {0: Extent(first * width, (last + 1) * width)},
        {0: whole(f.batches * f.output_height * f.output_width, width)},
        largest=max(abs(rows[0]), abs(rows[1]), abs(columns[0]), abs(columns[1])),
    )


def resize_by_tables(arguments: Arguments) -> Extents:
    """`thimble_resize_nearest`, `thimble_resize_linear_s8`: the indices in their tables."""
    f, constants = arguments.fields, arguments.constants
    pairs = 2 if "row_weights" in constants else 1
    used = {
        name: constants[name][: pairs * size]
        for name, size in (("rows", f.output_height), ("columns", f.output_width))
    }
    spans = [(int(table.min()), int(table.max())) for table in used.values()]
    pixel = f.channels if pairs == 2 else f.pixel_bytes
    found = _resized(f, pixel, *spans)
    read = {"rows": 2 * pairs * f.output_height, "columns": 2 * pairs * f.output_width}
    if pairs == 2:
        read |= {"row_weights": 8 * f.output_height, "column_weights": 8 * f.output_width}
    return Extents(found.inputs, found.outputs, read)


def resize_bilinear(arguments: Arguments) -> Extents:
    """`thimble_resize_bilinear_s8` and `_s16` clamp both neighbours to the image."""
    f = arguments.fields
    if f.legacy:
        return resize_float(1)(arguments)
    width = f.channels * widths(f.function)[0]
    ends = [(0, f.input_height - 1), (0, f.input_width - 1)]
    found = _resized(f, width, *ends)
    places = (
        abs(f.row_start) + f.output_height * abs(f.row_step) + (1 << 10),
        abs(f.column_start) + f.output_width * abs(f.column_step) + (1 << 10),
    )
    return Extents(found.inputs, found.outputs, largest=max(places))


def resize_float(width: int) -> ExtentRule:
    """`thimble_around` (thimble_neighbours.h), which clamps each neighbour on one side."""

    def rule(arguments: Arguments) -> Extents:
        f, sizes = arguments.fields, SimpleNamespace(**arguments.fields.sizes)
        centred = f.half_pixel_centers
        rows = _neighbours(f.rows, centred, sizes.output_height, sizes.input_height)
        columns = _neighbours(f.columns, centred, sizes.output_width, sizes.input_width)
        return _resized(sizes, sizes.channels * width, rows, columns)

    return rule


def _neighbours(
    line: Mapping[str, Any], half_pixel: int, outputs: int, size: int
) -> tuple[int, int]:
    """The first and the last position that any output reads along one axis."""
    half, scale, first = np.float32(0.5), np.float32(float.fromhex(line["scale"])), line["first"]
    index = (line["begin"] + np.arange(outputs)).astype(np.float32)
    place = (index + half) * scale - half if half_pixel else index * scale
    lower = np.maximum(np.floor(place).astype(np.int64), 0) - first
    upper = np.minimum(np.ceil(place).astype(np.int64), size + first - 1) - first
    return int(min(lower.min(), upper.min())), int(max(lower.max(), upper.max()))


def lstm(arguments: Arguments) -> Extents:
    """`thimble_lstm_s8`: row (batch, step) is number batch * batch_stride + step * step_stride."""
    f = arguments.fields
    batches, steps, inputs, units = f.sizes
    rows = (batches - 1) * f.strides[0] + (steps - 1) * f.strides[1] + 1
    constants: dict[str, int] = {}
    for gate in f.gates:
        name = gate["name"]
        constants |= {f"{name}_weights": units * inputs, f"{name}_recurrent": units * units}
        constants |= {f"{name}_bias": 4 * units, f"{name}_recurrent_bias": 4 * units}
    return Extents(
        {0: Extent(0, rows * inputs, touched=batches * steps * inputs)},
        {
            0: Extent(0, rows * units, touched=batches * steps * units),
            1: whole(batches * units),
            2: whole(batches * units, 2),
        },
        constants,
        scratch=len(f.gates) * units * 2,
    )


def svdf(arguments: Arguments) -> Extents:
    """`arm_svdf_state_s16_s8`: the units follow from filters and rank; both sums in scratch."""
    f = arguments.fields
    units, filters = f.filters // f.rank if f.rank else 0, f.filters
    read = {0: whole(f.batches * f.depth), 1: whole(filters * f.depth)}
    read[2] = whole(filters * f.memory, 2)
    if arguments.has(3):
        read[3] = whole(units, 4)
    return Extents(
        read,
        {0: whole(f.batches * units), 1: whole(f.batches * filters * f.memory, 2)},
        scratch=4 * max(f.batches * filters, f.sums_words + f.batches * units),
    )


def svdf_s8(arguments: Arguments) -> Extents:
    """`thimble_svdf_s8`, as its header says."""
    f = SimpleNamespace(**arguments.fields.params)
    filters = f.units * f.rank
    read = {0: whole(f.batches * f.depth), 1: whole(filters * f.depth)}
    read[2] = whole(filters * f.memory)
    if arguments.fields.has_bias:
        read[3] = whole(f.units, 4)
    return Extents(read, {0: whole(f.batches * f.units), 1: whole(f.batches * filters * f.memory)})

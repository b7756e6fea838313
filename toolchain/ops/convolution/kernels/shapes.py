"""The bytes that a call with a `thimble_conv_shape` touches, read back from that argument."""

from __future__ import annotations

import math

from toolchain.ops import kit

Shape = tuple[int, ...]


def image(shape: Shape, width: int = 1, line: int = 0, *, transposed: int = 0) -> kit.Extent:
    """An NHWC image of elements of `width` bytes; `line`: bytes from line to line, where there are
    gaps. `transposed`: height and width are swapped in `shape`."""
    batches, height, columns, channels = shape
    if transposed:
        height, columns = columns, height
    if not line:
        return kit.whole(math.prod(shape), width)
    return kit.Extent(0, columns * channels * width, line, batches * height)


def input_shape(call: kit.Call) -> Shape:
    """The input's, as the call has it."""
    return kit.shape_in(call, "shape", "input")


def output_shape(call: kit.Call) -> Shape:
    """The output's, as the call has it."""
    return kit.shape_in(call, "shape", "output")


def taps(call: kit.Call) -> int:
    """Weights of a filter."""
    return call["shape.kernel_h"] * call["shape.kernel_w"] * call["shape.depth"]


def extents_of_images(
    touched: kit.Touched, parameter_bytes: int, scratch_bytes: int
) -> kit.Extents:
    """Bytes of a kernel that touches both images whole, its constant `parameters` and scratch."""
    call = touched.call
    transposed = call.get("shape.transposed")
    return kit.Extents(
        {0: image(input_shape(call), line=touched.input_line(), transposed=transposed)},
        {0: image(output_shape(call), line=touched.output_line, transposed=transposed)},
        {"parameters": parameter_bytes},
        scratch_bytes,
        kit.reach_in(call, "shape"),
    )


def groups_of(call: kit.Call) -> tuple[int, int]:
    """The groups of filters, and the filters of each."""
    depth, filters = call["shape.depth"], call["shape.output_c"]
    groups = call["shape.input_c"] // depth if depth else 0
    return groups, filters // groups if groups else 0


def extents_of_groups(
    touched: kit.Touched, parameter_bytes: int, scratch_bytes: int
) -> kit.Extents:
    """As `extents_of_images`, of a kernel that takes one group of filters after the other, each
    with so many bytes of parameters. Taps outside the image are not read.
    """
    call = touched.call
    groups, channels = groups_of(call)
    written = image(output_shape(call), line=touched.output_line)
    if groups * channels != call["shape.output_c"]:  # the rest is left as it was
        written = kit.Extent(0, written.end, written.pitch, written.lines, touched=0)
    return kit.Extents(
        {0: image(input_shape(call), line=touched.input_line())},
        {0: written},
        {"parameters": groups * parameter_bytes},
        scratch_bytes,
        kit.reach_in(call, "shape"),
    )

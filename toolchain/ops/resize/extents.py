"""The pixels that the resize kernels read."""

from __future__ import annotations

import numpy as np

from toolchain.ops import kit

_CENTRED = "params.half_pixel_centers"
_FRACTION = 1 << kit.defined("include/thimble_data.h", "THIMBLE_BILINEAR_BITS")


def _resized(
    call: kit.Call, width: int, rows: tuple[int, int], columns: tuple[int, int]
) -> kit.Extents:
    """Pixels of `width` bytes from rows and columns [first, last] of each image of a batch."""
    input_height, input_width = call["params.input_height"], call["params.input_width"]
    batches, image = call["params.batches"], input_height * input_width
    pixels = batches * call["params.output_height"] * call["params.output_width"]
    first = rows[0] * input_width + columns[0]
    last = (batches - 1) * image + rows[1] * input_width + columns[1]
    return kit.Extents(
        {0: kit.Extent(first * width, (last + 1) * width)},
        {0: kit.whole(pixels, width)},
        largest=max(abs(rows[0]), abs(rows[1]), abs(columns[0]), abs(columns[1])),
    )


def extents_by_tables(touched: kit.Touched) -> kit.Extents:
    """`thimble_resize_nearest`, `thimble_resize_linear_s8` and `_f32`, which read indices from
    tables.

    The first has one index per output row or column; the others have two, and their weights.
    """
    call, constants = touched.call, touched.constants
    weighed = "row_weights" in constants
    indices = 2 if weighed else 1
    sizes = {"rows": call["params.output_height"], "columns": call["params.output_width"]}
    used = (constants[name][: indices * size] for name, size in sizes.items())
    rows, columns = ((int(table.min()), int(table.max())) for table in used)
    if weighed:
        pixel_bytes = call["params.channels"] * touched.outputs[0].element_bytes
    else:
        pixel_bytes = call["params.pixel_bytes"]
    pixels = _resized(call, pixel_bytes, rows, columns)
    read = {name: 2 * indices * size for name, size in sizes.items()}
    if weighed:
        read |= {"row_weights": 8 * sizes["rows"], "column_weights": 8 * sizes["columns"]}
    return kit.Extents(pixels.inputs, pixels.outputs, read)


def extents_in_fixed_point(touched: kit.Touched, element_bytes: int) -> kit.Extents:
    """`thimble_resize_bilinear_s8` and `_s16`, which clamp both neighbours to the image."""
    call = touched.call
    pixel_bytes = call["params.channels"] * element_bytes
    rows, columns = call["params.input_height"] - 1, call["params.input_width"] - 1
    pixels = _resized(call, pixel_bytes, (0, rows), (0, columns))
    largest = max(
        abs(call[f"params.{name}.start"]) + size * abs(call[f"params.{name}.step"]) + _FRACTION
        for name, size in (
            ("rows", call["params.output_height"]),
            ("columns", call["params.output_width"]),
        )
    )
    return kit.Extents(pixels.inputs, pixels.outputs, largest=largest)


def extents_in_float(touched: kit.Touched, element_bytes: int) -> kit.Extents:
    """Kernels that use `thimble_around` (thimble_neighbours.h), which clamps each neighbour on one
    side, of images of such elements.
    """
    call = touched.call
    rows = _neighbours(call, "rows", call["params.output_height"], call["params.input_height"])
    columns = _neighbours(call, "columns", call["params.output_width"], call["params.input_width"])
    return _resized(call, call["params.channels"] * element_bytes, rows, columns)


def _neighbours(call: kit.Call, name: str, outputs: int, size: int) -> tuple[int, int]:
    """The first and the last position that any output reads along one axis."""
    scale = call.find(f"params.{name}.scale")
    assert isinstance(scale, float)
    begin, first = call[f"params.{name}.begin"], call[f"params.{name}.first"]
    half, step = np.float32(0.5), np.float32(scale)
    index = (begin + np.arange(outputs)).astype(np.float32)
    place = (index + half) * step - half if call[_CENTRED] else index * step
    lower = np.maximum(np.floor(place).astype(np.int64), 0) - first
    upper = np.minimum(np.ceil(place).astype(np.int64), size + first - 1) - first
    return int(min(lower.min(), upper.min())), int(max(lower.max(), upper.max()))

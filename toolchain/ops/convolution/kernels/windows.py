"""Cost terms of kernels that slide a window over an image.

Kernels gather windows that lie inside the image by a quicker path than those at its edges, so the
two are counted apart.
"""

from __future__ import annotations

from toolchain.ops import kit

Counts = dict[str, float]


def seen_taps(op: kit.AnyOperator, window: kit.Window) -> int:
    """Taps of all windows that lie inside the image."""
    batches = op.y.shape[0]
    rows, columns = kit.walked(op.x.shape, op.y.shape, window)
    return batches * rows.taps * columns.taps


def gathered_terms(op: kit.AnyOperator, window: kit.Window, depth: int, times: int) -> Counts:
    """Terms of the windows that are copied to columns, widened to int16."""
    x, y = op.x, op.y
    (kernel_h, kernel_w), dilation_w = window.kernel, window.dilation[1]
    row_bytes = kernel_w * depth
    runs = kernel_w == 1 or (dilation_w == 1 and depth == x.shape[3])
    uneven = row_bytes % 4 != 0
    rows, columns = kit.walked(op.x.shape, op.y.shape, window)
    whole = 0
    if runs and x.shape[2] * x.shape[3] >= 4:
        whole = rows.whole * columns.whole
        if uneven:  # three bytes more are read, in the last line too
            walk = (kernel_w, window.stride[1], dilation_w, window.padding.left)
            within = kit.along(x.shape[2], y.shape[2], *walk, -(-3 // x.shape[3]))
            whole -= rows.last * (columns.whole - within.whole)
    edge = rows.windows * columns.windows - whole
    whole_rows = whole * kernel_h
    seen_rows = rows.taps * columns.windows - whole_rows
    seen_taps = rows.taps * columns.taps - whole_rows * kernel_w
    blank_taps = edge * kernel_h * kernel_w - seen_taps
    words = -(-kernel_h * kernel_w * depth // 4)
    terms: Counts = {
        "edge window": edge,
        "edge row": edge * kernel_h,
        "edge row in image": seen_rows,
    }
    if uneven or depth % 4:
        contiguous = dilation_w == 1 and depth == x.shape[3]
        terms["edge byte filled"] = blank_taps * depth
        if contiguous:
            per_row = seen_taps * depth / seen_rows if seen_rows else 0
            terms["edge byte run"] = seen_rows
            terms["edge word copied"] = seen_rows * (per_row // 4)
            terms["edge byte copied"] = seen_rows * (per_row % 4)
        else:
            terms["edge byte run"] = seen_taps
            terms["edge word copied"] = seen_taps * (depth // 4)
            terms["edge byte copied"] = seen_taps * (depth % 4)
        terms["column"] = edge if uneven else edge * kernel_h
        terms["column word"] = edge * words
    else:
        terms["edge word filled"] = blank_taps * depth / 4
        terms["column"] = seen_rows if runs else seen_taps
        terms["column word"] = seen_taps * depth / 4
    if whole and uneven:
        terms["inside row staged"] = whole_rows
        terms["inside word staged"] = whole_rows * -(-row_bytes // 4)
        terms["column"] += whole
        terms["column word"] += whole * words
    elif whole:
        terms["inside row"] = whole_rows
        terms["column"] += whole_rows
        terms["column word"] += whole_rows * row_bytes / 4
    return {name: times * count for name, count in terms.items()}

"""Parts of cost formulas that several families share.

A term is a named count of how often a part of a kernel runs: loop iterations, calls, rows. The cost
model multiplies each term by cycles that were fitted to measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.rounding import Rounding

SELDOM = ("slow", "float", "summed")
"""Parts of the names of terms that few models have. They are fitted last, with the others known."""
_LEAST_SLOW = 0.5
"""From this factor on a sum takes no right shift (`convolution.packing.shift_code`)."""


def runs_of_four(size: int, times: int = 1, path: str = "") -> kit.Terms:
    """Terms of a loop that takes four elements at a time, and of the loop over the rest.

    `size` elements are walked `times` times; `path` is appended to the names.
    """
    return {f"four{path}": times * (size // 4), f"rest{path}": times * (size % 4)}


@dataclass(frozen=True)
class Along:
    """Counts of the windows along one axis of an image.

    `windows` is their number, `taps` the sum of their taps inside the image, `whole` the number of
    windows that lie inside the image altogether, `last` the number of those that end at its last
    pixel.
    """

    windows: int
    taps: int
    whole: int
    last: int


def along(
    size: int, windows: int, kernel: int, stride: int, dilation: int, before: int, margin: int
) -> Along:
    """Count windows and taps along one axis, in pixels.

    `before` is the padding at the start. A window counts as whole only if `margin` more pixels
    follow its last tap.
    """
    taps = whole = last = 0
    for first in range(-before, windows * stride - before, stride):
        inside = range(max(-(first // dilation), 0) if first < 0 else 0, kernel)
        end = min(kernel, -(-(size - first) // dilation)) if first < size else 0
        taps += max(end - inside.start, 0)
        final = first + (kernel - 1) * dilation
        whole += first >= 0 and final + margin < size
        last += first >= 0 and final == size - 1
    return Along(windows, taps, whole, last)


def is_narrow(op: kit.AnyOperator) -> bool:
    """Whether the kernel clamps its outputs to less than the whole range of int8."""
    activation = getattr(op.attributes, "activation", Activation.NONE)
    return clamp_range(activation, op.y) != (-128, 127)


def slow_channels(op: kit.AnyOperator, once: bool = False) -> tuple[str, NDArray[np.bool_]]:
    """The slow path's name, and a mask of the output channels that take it.

    A channel takes it if no quick right shift scales its sums: with TFLite's rounding if its factor
    is 0.5 or more (path "slow"), with ONNX's always (path "float"). With `once` the kernel has a
    quick ending for nearly all of those, too: one rounding or, in assembly, the FPU.
    """
    x, weights, y = op.x, op.input(1), op.y
    channels = y.shape[-1]
    if getattr(op.attributes, "rounding", Rounding.TFLITE) is Rounding.ONNX:
        return "float", np.full(channels, not once, np.bool_)
    factors = np.array(weights.q.scales) * (x.q.scale / y.q.scale)
    return "slow", np.broadcast_to(factors >= _LEAST_SLOW, channels)

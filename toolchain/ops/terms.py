"""Parts of cost formulas that kernels of several families share: counts of their loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.activation import Activation, clamp_range
from toolchain.ops.arithmetic.rounding import Rounding
from toolchain.ops.kernel import Terms

SELDOM = ("slow", "float", "summed")
"""Parts of the names of terms that few models have. They are fitted last, with the others known."""
_LEAST_SLOW = 0.5
"""The least factor of a sum that takes no right shift (`convolution.packing.shift_code`)."""


def runs_of_four(size: int, times: int = 1, path: str = "") -> Terms:
    """The counts of a loop over four elements at a time and of one over the rest."""
    return {f"four{path}": times * (size // 4), f"rest{path}": times * (size % 4)}


@dataclass(frozen=True)
class Along:
    """The windows along one axis of an image: their number, and how many of their taps lie inside
    it.

    `whole`: the number of windows all of whose taps lie inside. `last`: how many of those end at
    the last pixel.
    """

    windows: int
    taps: int
    whole: int
    last: int


def along(
    size: int, windows: int, kernel: int, stride: int, dilation: int, before: int, margin: int
) -> Along:
    """The windows along one axis. `margin`: pixels that a whole window needs beyond its last
    tap.
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


def is_narrow(op: Op, graph: Graph) -> bool:
    """Whether the kernel clamps to less than the whole range of int8."""
    activation = getattr(op.attributes, "activation", Activation.NONE)
    return clamp_range(activation, graph.output(op)) != (-128, 127)


def slow_channels(op: Op, graph: Graph) -> tuple[str, NDArray[np.bool_]]:
    """The slow path, and the output channels that take it because no quick shift scales them.

    These are channels whose factor is 0.5 or more (TFLite), and all channels that round as ONNX
    does.
    """
    x, weights, y = graph.input(op, 0), graph.input(op, 1), graph.output(op)
    channels = y.shape[-1]
    if getattr(op.attributes, "rounding", Rounding.TFLITE) is Rounding.ONNX:
        return "float", np.ones(channels, np.bool_)
    factors = np.array(weights.q.scales) * (x.q.scale / y.q.scale)
    return "slow", np.broadcast_to(factors >= _LEAST_SLOW, channels)

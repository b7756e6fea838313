"""Parts of the kernels of int8 depthwise convolutions: how they go over the image, and how the sums
of their channels end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit
from toolchain.ops.arithmetic import packing
from toolchain.ops.convolution import endings, parts
from toolchain.ops.convolution.common import Convolution, filters_of, weight_zero_point

_INT8 = (-128, 127)
Endings = Callable[[packing.Scaling, int, int], packing.Ending]
"""How sums end, by their scales, the output's zero point and that of the weights."""
Ended = Callable[[], tuple[packing.Scaling, packing.Ending]]
"""The scales of an operator's sums, and how they end, computed when it is called."""

_TRANSPOSED = "Height and width are swapped below: the kernel walks the image transposed."


@dataclass(frozen=True)
class Walk:
    """How an own depthwise kernel goes over the image: `band` output rows at a time.

    `transposed`: rows are columns, in `window` too. `at_once`: channels whose lines are made
    together, if not 0.
    """

    window: kit.Window
    band: int
    transposed: bool = False
    at_once: int = 0


def along_walk(filters: packing.Int8, window: kit.Window, transposed: bool) -> packing.Int8:
    """Filters [channels, height * width] as a walk takes them: [channels, width * height] if that
    is `transposed`.
    """
    if not transposed:
        return filters
    return filters.reshape(-1, *window.kernel).transpose(0, 2, 1).reshape(len(filters), -1)


def waiting_rows(rows: int, window: kit.Window) -> int:
    """How many of `rows` output rows a kernel for blocks of channels keeps before it writes the
    first.

    By then nothing reads the input rows that an output in the input's place overwrites.
    """
    return min(rows, -(-(window.padding.top + 1) // window.stride[0]))


def walked_depthwise(
    op: kit.Operator[Convolution],
    function: str,
    walk: Walk,
    pack: Callable[[], kit.Int32],
    *,
    scratch_bytes: int,
    extents: Callable[[kit.Touched], kit.Extents],
    overlaps: Callable[[], tuple[kit.SafeOverlap, ...]],
    terms: Callable[[kit.Call], kit.Terms],
    form: str = "",
) -> kit.Kernel:
    """The kernel of a walk. `pack` gives its parameters, `terms` the loops of its call."""

    def call(lines: tuple[int, int]) -> kit.Call:
        shape = parts.conv_shape(
            op,
            walk.window,
            depth=1,
            lines=lines,
            band=walk.band,
            at_once=walk.at_once,
            transposed=walk.transposed,
        )
        return parts.own_call(op, function, shape, note=_TRANSPOSED if walk.transposed else "")

    return parts.image_kernel(
        op,
        call,
        parts.parameters(op, function, pack),
        scratch_bytes=scratch_bytes,
        extents=extents,
        overlaps=overlaps,
        terms=lambda: terms(call((0, 0))),
        form=form,
    )


def ended(op: kit.Operator[Convolution], ending: Endings) -> Ended:
    """The channels' filters [channels, height * width] with their scales, and how their sums end by
    `ending` before the activation, which is the kernel's last step. Computed when the returned
    function is called. Raises ScaleError at once as `check_sums` does.
    """
    parts.scaled(op, filters_of(op))
    sums = parts.Sums.of(op)
    return lambda: _ended(ending, sums)


@lru_cache(maxsize=parts.REMEMBERED)
def _ended(ending: Endings, sums: parts.Sums) -> tuple[packing.Scaling, packing.Ending]:
    scales = parts.scaling_of(sums)
    return scales, ending(scales, sums.y.zero_point, weight_zero_point(sums.weights))


def raised(scales: packing.Scaling, offset: int, weight_zero_point: int) -> packing.Ending:
    """`raised_endings` before an activation."""
    return endings.raised_endings(scales, offset, _INT8, weight_zero_point)


def slow_endings(
    op: kit.Operator[Convolution], ending: packing.Ending
) -> tuple[str, NDArray[np.bool_]]:
    """The slow path's name and its channels as in `slow_channels`; the signs of codes tell them."""
    path = "float" if op.attributes.rounding is kit.Rounding.ONNX else "slow"
    return path, ending.code < 0

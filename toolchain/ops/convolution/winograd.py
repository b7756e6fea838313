"""Which kernels by Winograd's algorithm apply to an int8 conv2d (`kernels.winograd`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

from toolchain.ops import kit
from toolchain.ops.convolution.common import Convolution
from toolchain.ops.convolution.kernels import (
    thimble_convolve_winograd_4x4_s8,
    thimble_convolve_winograd_s8,
)
from toolchain.ops.convolution.kernels.winograd import Form

_KERNELS = MappingProxyType(
    {2: thimble_convolve_winograd_s8.kernel, 4: thimble_convolve_winograd_4x4_s8.kernel}
)
FORMS: Mapping[int, Form] = MappingProxyType(
    {
        form.tile: form
        for form in (thimble_convolve_winograd_s8.FORM, thimble_convolve_winograd_4x4_s8.FORM)
    }
)
"""By the side of a tile."""


def winograd_conv2d(
    op: kit.Operator[Convolution], tile: int = 2, most: int = 3
) -> kit.Kernel | None:
    """The kernel of tiles of `tile` x `tile` outputs, 2 or 4; else as `winograd_kernel`."""
    return _KERNELS[tile](op, most)


def winograd_forms(op: kit.Operator[Convolution]) -> tuple[kit.Kernel, ...]:
    """The kernels that apply to an int8 conv2d, each for two tiles together and, where it has
    room, three.
    """
    kernels = []
    for tile in FORMS:
        two, three = (winograd_conv2d(op, tile, most) for most in (2, 3))
        if two is not None and three is not None:
            more = three.scratch_bytes > two.scratch_bytes
            kernels.append(replace(two, more_scratch=partial(tuple, (three,))) if more else two)
    return tuple(kernels)

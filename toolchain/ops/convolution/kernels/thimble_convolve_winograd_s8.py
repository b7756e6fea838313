"""`thimble_convolve_winograd_s8` and `thimble_convolve_winograd_4x4_s8`: Winograd's algorithm for
int8 convolutions, in integers: the same results, fewer products.

A tile of outputs is `A^T (u * v) A` with `u = G g G^T` of a filter and `v = B^T d B` of the pixels
that it sees (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, arXiv 1509.09308):
F(2x2, 3x3) takes 16 products for 36, F(4x4, 3x3) 36 for 144. With rows of G multiplied so that all
is integer, u and v fit int16 and sums may wrap: outputs come 4 or 576 = 64 * 9 times as large,
modulo 2**32, where 9 has an inverse. So nothing is rounded. The matrices are in
`runtime_c/source/convolution/thimble_winograd.h`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from toolchain.ops import kit, walks
from toolchain.ops.arithmetic import packing
from toolchain.ops.arithmetic.high_word import MOST_ADDED
from toolchain.ops.arithmetic.onnx_rounding import FLOAT_CODE
from toolchain.ops.convolution import endings, parts
from toolchain.ops.convolution.common import (
    Convolution,
    Windowed,
    weight_zero_point,
    window_of,
)
from toolchain.ops.convolution.kernels import shapes

Int16 = NDArray[np.int16]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]

_FITS = 1 << 31
_MOST_CHANNELS = 2048
_HEADER = "source/convolution/thimble_winograd.h"
_NARROW = kit.defined(_HEADER, "THIMBLE_WINOGRAD_NARROW")
_FLOAT_FACTOR = kit.defined(_HEADER, "THIMBLE_WINOGRAD_FLOAT_FACTOR")
Position = tuple[int, int]


@dataclass(frozen=True)
class Form:
    """F(tile x tile, 3 x 3) in integers.

    function   the kernel.
    g          u of a filter g3x3 is `g @ g3x3 @ g.T`, for each channel.
    positions  row and column of u and v in the order in which the kernel adds their products.
    negative   those of which u is stored with the other sign, so that the kernel only adds.
    scale      how many times an output the sums come to, modulo 2**32.
    kept       how many times an output must fit 32 bits: the largest power of two in `scale`, whose
               odd factor has an inverse modulo 2**32.
    """

    function: str
    tile: int
    g: Int64
    positions: tuple[Position, ...]
    negative: frozenset[Position]
    scale: int
    kept: int

    @property
    def side(self) -> int:
        """Pixels along each side that a tile sees."""
        return self.tile + 2

    def transformed(self, filters: packing.Int8) -> Int16:
        """u of filters [channels, 3, 3, depth], as [position, channels, depth], signs as stored."""
        u = np.einsum("ai,kijc,bj->abkc", self.g, filters.astype(np.int64), self.g)
        signed = [-u[at] if at in self.negative else u[at] for at in self.positions]
        return np.stack(signed).astype(np.int16)

    def flash_bytes(self, depth: int, channels: int) -> int:
        """Bytes of packed parameters, for `depth` input channels."""
        return channels // 2 * (32 + 4 * len(self.positions) * depth)

    def tiles(self, height: int, width: int) -> int:
        """Tiles of an image of outputs."""
        return -(-height // self.tile) * -(-width // self.tile)

    def scratch_bytes(self, depth: int, y: Sequence[int], most: int = 3) -> int:
        """v of the tiles that are computed together, at most `most`, as int16, and the pixels that
        one tile sees; with tiles of 4x4, where some lie beyond the image's end, their outputs.

        `y` is the outputs' shape.
        """
        count = together(self.tiles(y[1], y[2]), most)[0]
        seen = self.side**2 * depth
        beyond = self.tile == 4 and (y[1] % 4 or y[2] % 4)
        return 2 * count * seen + max(seen, count * 16 * y[3] if beyond else 0)


_BY_COLUMNS = tuple((row, column) for column in (1, 2, 0, 3) for row in (1, 2, 0))
_ORDER = (1, 2, 3, 4, 0, 5)
FORMS: Mapping[int, Form] = MappingProxyType(
    {
        2: Form(
            "thimble_convolve_winograd_s8",
            2,
            np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]]),
            (*_BY_COLUMNS, (3, 1), (3, 2), (3, 0), (3, 3)),
            frozenset({*_BY_COLUMNS[9:], (3, 1), (3, 2), (3, 0)}),
            4,
            4,
        ),
        4: Form(
            "thimble_convolve_winograd_4x4_s8",
            4,
            np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 12]]),
            tuple((row, column) for row in _ORDER for column in _ORDER),
            frozenset(),
            576,
            64,
        ),
    }
)
"""By the side of a tile."""
FUNCTIONS = tuple(form.function for form in FORMS.values())


def winograd_forms(op: kit.Operator[Convolution]) -> tuple[kit.Kernel, ...]:
    """The kernels that apply to an int8 conv2d, each for two tiles together and, where it has
    room, three.
    """
    kernels = []
    for tile in FORMS:
        two, three = (kernel(op, tile, most) for most in (2, 3))
        if two is not None and three is not None:
            more = three.scratch_bytes > two.scratch_bytes
            kernels.append(replace(two, more_scratch=partial(tuple, (three,))) if more else two)
    return tuple(kernels)


def kernel(op: kit.Operator[Convolution], tile: int, most: int = 3) -> kit.Kernel | None:
    """The kernel of tiles of `tile` x `tile` outputs of an int8 conv2d of one image, 3x3 with
    stride 1; None where it does not apply.

    It computes `most` tiles together, 2 or 3.

    It takes input channels in a multiple of eight, an even number of output channels, no groups,
    and channels whose sums times `Form.kept` fit 32 bits and are shifted right by 1 to 22, or
    scaled in float. Weights take 32 bytes for nine, with tiles of 4x4 72 (`Form.flash_bytes`).
    Raises ScaleError as the other kernels do.
    """
    form, x, weights, y = FORMS[tile], op.input(kit.INPUT), op.input(kit.WEIGHTS), op.y
    attributes, window = op.attributes, window_of(op)
    depth, channels = x.shape[3], y.shape[3]
    plain = window.kernel == (3, 3) and window.stride == window.dilation == (1, 1)
    whole = x.shape[0] == 1 and weights.shape[3] == depth and weight_zero_point(weights) == 0
    fits = depth % 8 == 0 and depth <= _MOST_CHANNELS and channels % 2 == 0
    if not (plain and whole and fits):
        return None
    sums = parts.Sums.of(op)
    scales, in_float = parts.scaling_of(sums), sums.rounding is kit.Rounding.ONNX
    if form.kept * _reached(sums) >= _FITS or (not in_float and scales.code.min() < 0):
        return None
    low, high = kit.clamp_range(attributes.activation, y)
    narrow = (low, high) != (-128, 127)

    def call(lines: tuple[int, int]) -> kit.Call:
        band = 2 if most == 2 else 0
        shape = parts.conv_shape(op, window, depth, lines=lines, band=band)
        return parts.own_call(op, form.function, shape)

    def packed() -> Int32:
        return _packed(form, scales, y.q.zero_point, (low, high))

    made = parts.image_kernel(
        op,
        call,
        parts.parameters(op, form.function, packed, "transformed filters"),
        scratch_bytes=form.scratch_bytes(depth, y.shape, most),
        rows=form.tile,
        extents=lambda touched: _extents(form, touched),
        overlaps=lambda: _overlaps(form, op, most),
        terms=lambda: _terms(form, op, most, narrow),
        form="" if most == 2 else "3 tiles at once",
    )
    return replace(made, packed_bytes=form.flash_bytes(depth, channels))


@lru_cache(maxsize=parts.REMEMBERED)
def _reached(sums: parts.Sums) -> int:
    """The largest sum of a channel. Sums with float factors may be raised by as much as they reach
    below 0, and more (`raised_endings`).
    """
    filters, bias = sums.read()
    reached = int(packing.largest_sums(bias, filters, sums.x.zero_point, partial=False).max())
    return 2 * reached + MOST_ADDED if sums.rounding is kit.Rounding.ONNX else reached


def _packed(
    form: Form, scales: packing.Scaling, output_offset: int, activation: tuple[int, int]
) -> Int32:
    """For the form's function, whose header says in which order.

    `scales` are of filters [channels, 9 * depth], all with shift codes >= 0, or with FLOAT_CODE.
    """
    channels = len(scales.bias)
    u = form.transformed(scales.filters.reshape(channels, 3, 3, -1))
    # [pair, position, fours, (0 and 2, 1 and 3), channel of the pair, two input channels]
    fours = u.reshape(len(form.positions), channels // 2, 2, -1, 2, 2).transpose(1, 0, 3, 5, 2, 4)
    words = np.ascontiguousarray(fours, dtype="<i2").view("<i4").reshape(channels // 2, -1)
    ending = endings.raised_endings(scales, output_offset, activation)
    in_float = ending.code == FLOAT_CODE
    factors = np.where(in_float, ending.multiplier, 0).astype(np.int32).view(np.float32)
    halves = (np.float32(0.5) * factors).view(np.int32)
    code = np.where(in_float, _FLOAT_FACTOR, ending.code) + _NARROW * (activation != (-128, 127))
    scaling = np.stack([np.where(in_float, halves, ending.multiplier), ending.rounding, code], 1)
    parts = [
        _wrapped(form.scale * ending.bias.astype(np.int64)).reshape(-1, 2),
        words,
        _wrapped(scaling.astype(np.int64)).reshape(-1, 6),
    ]
    return np.concatenate(parts, axis=1).reshape(-1).astype(np.int32)


def _wrapped(values: Int64) -> Int32:
    return values.astype(np.uint64).astype(np.uint32).view(np.int32)


def _extents(form: Form, touched: kit.Touched) -> kit.Extents:
    call = touched.call
    depth, *y = (
        call[f"shape.{name}"] for name in ("input_c", "batches", "output_h", "output_w", "output_c")
    )
    scratch = form.scratch_bytes(depth, y, 2 if call.get("shape.band") == 2 else 3)
    return shapes.extents_of_images(touched, form.flash_bytes(depth, y[3]), scratch)


def _overlaps(form: Form, op: kit.Operator[Windowed], most: int) -> tuple[kit.SafeOverlap, ...]:
    """Two or three tiles are read before their outputs are written, and they come row by row."""
    x, y = op.input(kit.INPUT).shape, op.y.shape
    pad, tile = window_of(op).padding, form.tile
    rows, columns = np.arange(0, y[1], tile), np.arange(0, y[2], tile)
    first = np.clip(rows - pad.top, 0, x[1])[:, None] * x[2] + np.clip(columns - pad.left, 0, x[2])
    below, right = np.minimum(rows + tile, y[1]), np.minimum(columns + tile, y[2])
    written = np.maximum.accumulate(((below[:, None] - 1) * y[2] + right).reshape(-1)) * y[3]
    later = np.minimum.accumulate(first.reshape(-1)[::-1])[::-1] * x[3]
    ends = np.cumsum(together(first.size, most))[:-1]
    return (kit.SafeOverlap(kit.INPUT, 0, walks.lead_bytes(written[ends - 1], later[ends])),)


def _terms(form: Form, op: kit.Operator[Windowed], most: int, narrow: bool) -> kit.Terms:
    """Tiles are transformed, then for each three tiles all pairs of output channels computed."""
    x, y = op.input(kit.INPUT).shape, op.y.shape
    pad, words = window_of(op).padding, x[3] // 4
    tiles = form.tiles(y[1], y[2])
    inside = _inside(form, x[1], y[1], pad.top) * _inside(form, x[2], y[2], pad.left)
    groups = together(tiles, most)
    threes, twos = (groups.count(count) * y[3] // 2 for count in (3, 2))
    return {
        "call": 1.0,
        "tile": sum(groups),
        "tile word": sum(groups) * words,
        "gathered tile": tiles - inside,
        "gathered tile word": (tiles - inside) * words,
        "group": len(groups),
        "pair of three": threes,
        "pair of three turn": len(form.positions) * threes * x[3] // 8,
        "pair of two": twos,
        "pair of two turn": len(form.positions) * twos * x[3] // 8,
        "narrow pair": (3 * threes + 2 * twos) * narrow,
    }


def together(tiles: int, most: int) -> list[int]:
    """How many tiles are computed together, in turn, as `thimble_winograd_together` says; the last
    one is taken again where one is left.
    """
    counts = []
    while tiles > 0:
        counts.append(2 if most == 2 or tiles == 4 or tiles < 3 else 3)
        tiles -= counts[-1]
    return counts


def _inside(form: Form, size: int, outputs: int, pad: int) -> int:
    """Along one axis: how many tiles see only pixels of the image."""
    starts = range(-pad, outputs - pad, form.tile)
    return sum(start >= 0 and start + form.side <= size for start in starts)

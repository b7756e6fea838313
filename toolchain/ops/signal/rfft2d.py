"""The Fourier transform of real float32 images, or of rows of sound, and what is kept of it.

TFLite RFFT2D with the COMPLEX_ABS, REAL or IMAG that reads it: complex numbers are never a tensor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

import numpy as np

from toolchain.ops import kit
from toolchain.ops.signal import fourier_f32
from toolchain.ops.signal.fourier_f32 import Float32

_LARGEST = 1 << 15
_FLOAT_BYTES = 4


class Kept(Enum):
    """The part of complex numbers that is kept. The value is the TFLite operator that takes it."""

    MAGNITUDE = "COMPLEX_ABS"
    REAL = "REAL"
    IMAGINARY = "IMAG"


@dataclass(frozen=True)
class Rfft2d(kit.Attributes):
    """`height` and `width` of the transform, powers of 2: images are cut, or filled up with zeros.

    There is an output for each part that is `kept`, of width / 2 + 1 columns.
    """

    height: int = 1
    width: int = 2
    kept: tuple[Kept, ...] = (Kept.MAGNITUDE,)


def _is_power_of_two(value: int) -> bool:
    return value > 0 and not value & (value - 1)


def _infer(op: kit.Operator[Rfft2d]) -> kit.TensorTypes:
    x, attributes = op.x, op.attributes
    if len(x.shape) < 2 or x.dtype is not kit.DType.FLOAT32:
        raise ValueError(f"it transforms float32 images, not {x}")
    for size, least in ((attributes.height, 1), (attributes.width, 2)):
        if not (_is_power_of_two(size) and least <= size <= _LARGEST):
            raise ValueError(
                f"a transform of {attributes.height}x{attributes.width}: sizes are powers of 2 up "
                f"to {_LARGEST}, the width from 2"
            )
    if not attributes.kept or len(set(attributes.kept)) != len(attributes.kept):
        raise ValueError(f"it keeps {[kept.value for kept in attributes.kept]}")
    shape = (*x.shape[:-2], attributes.height, attributes.width // 2 + 1)
    return (kit.TensorType(shape, x.dtype),) * len(attributes.kept)


def _reference(op: kit.Operator[Rfft2d], inputs: kit.Inputs) -> kit.Arrays:
    attributes = op.attributes
    given = inputs[0].astype(np.float32)[..., : attributes.height, : attributes.width]
    padded = np.zeros((*given.shape[:-2], attributes.height, attributes.width), np.float32)
    padded[..., : given.shape[-2], : given.shape[-1]] = given
    with np.errstate(all="ignore"):
        numbers = fourier_f32.real_transform(padded)
        if attributes.height > 1:
            columns = fourier_f32.transform(
                np.swapaxes(numbers, -3, -2), fourier_f32.complex_tables(attributes.height)
            )
            numbers = np.swapaxes(columns, -3, -2)
    return tuple(_part(numbers, kept) for kept in attributes.kept)


def _part(numbers: Float32, kept: Kept) -> Float32:
    if kept is Kept.MAGNITUDE:
        return fourier_f32.magnitude(numbers)
    return numbers[..., 0 if kept is Kept.REAL else 1].copy()


def _macs(op: kit.Operator[Rfft2d]) -> int:
    """Products of real numbers, of passes of radix 4: three of complex numbers for each four."""
    attributes, x = op.attributes, op.x
    row, column = attributes.width // 2, attributes.height
    rows = attributes.height * (row * max(row.bit_length() - 1, 0) * 3 // 2 + 2 * row)
    columns = (row + 1) * column * (column.bit_length() - 1) * 3 // 2
    return math.prod(x.shape[:-2]) * (rows + columns)


def _axes(op: kit.AnyOperator) -> tuple[kit.Axis, ...]:
    """All but those of the images."""
    rank = len(op.x.shape)
    return tuple(kit.Axis(axis, (kit.Reach(axis),)) for axis in range(rank - 2))


def _select(op: kit.Operator[Rfft2d], core: kit.Core) -> kit.Kernel:
    attributes, x = op.attributes, op.x
    rows, constants = fourier_f32.real_plan(attributes.width)
    columns = fourier_f32.complex_tables(attributes.height)
    across: dict[str, kit.Argument] = {
        "length": columns.length,
        "order": kit.NULL,
        "twiddles": kit.NULL,
    }
    if attributes.height > 1:
        across |= {"order": kit.Packed("column_order"), "twiddles": kit.Packed("column_twiddles")}
        constants += (
            kit.constant("column_order", columns.order),
            kit.constant("column_twiddles", columns.twiddles),
        )
    params = kit.Struct(
        "thimble_rfft2d_f32_params",
        {
            "slices": math.prod(x.shape[:-2]),
            "input_h": x.shape[-2],
            "input_w": x.shape[-1],
            "height": attributes.height,
            "width": attributes.width,
            "rows": rows,
            "columns": kit.Struct("thimble_fourier_f32", across),
        },
    )
    outputs: dict[str, kit.Argument] = {
        kept.name.lower(): kit.Output(attributes.kept.index(kept))
        if kept in attributes.kept
        else kit.NULL
        for kept in Kept
    }
    call = kit.Call(
        "thimble_rfft2d_f32",
        {"params": params, "input": kit.Input(0), **outputs, "work": kit.Scratch(element="float")},
    )
    return kit.Kernel(
        (call,),
        _extents,
        constants=constants,
        scratch_bytes=_scratch_bytes(attributes.height, attributes.width),
        find_overlaps=lambda: _overlaps(op),
        find_terms=lambda: _terms(op),
    )


def _scratch_bytes(height: int, width: int) -> int:
    column = height if height > 1 else 0
    return 2 * _FLOAT_BYTES * (height * (width // 2 + 1) + column)


def _overlaps(op: kit.Operator[Rfft2d]) -> tuple[kit.SafeOverlap, ...]:
    """An image is read before what is kept of it is written."""
    x, attributes = op.x, op.attributes
    if len(attributes.kept) > 1:
        return ()
    slices = math.prod(x.shape[:-2])
    more = attributes.height * (attributes.width // 2 + 1) - math.prod(x.shape[-2:])
    return (kit.SafeOverlap(0, lead_bytes=_FLOAT_BYTES * max((slices - 1) * more, 0)),)


def _passes(length: int) -> dict[str, float]:
    """Turns of `thimble_fourier_passes_f32`, once: pairs, and fours with and without factors."""
    counts = {"two": 0.0, "first of 4": 0.0, "four": 0.0, "run": 0.0}
    apart = 1
    if length.bit_length() % 2 == 0:
        counts["two"] = length // 2
        apart = 2
    while apart < length:
        firsts = length // (4 * apart)
        counts["first of 4"] += firsts
        counts["four"] += length // 4 - firsts
        counts["run"] += apart
        apart *= 4
    return counts


def _terms(op: kit.Operator[Rfft2d]) -> dict[str, float]:
    x, attributes = op.x, op.attributes
    slices, numbers = math.prod(x.shape[:-2]), attributes.width // 2 + 1
    rows = slices * attributes.height
    columns = slices * numbers if attributes.height > 1 else 0
    terms: dict[str, float] = {
        "call": 1.0,
        "row": rows,
        "sample": rows * attributes.width,
        "real pair": rows * (attributes.width // 4),
        "column": columns,
        "column number": columns * attributes.height,
        "kept": rows * numbers * len(attributes.kept),
        "magnitude": rows * numbers * (Kept.MAGNITUDE in attributes.kept),
    }
    across = _passes(attributes.height)
    for name, count in _passes(attributes.width // 2).items():
        terms[name] = rows * count + columns * across[name]
    return terms


def _extents(touched: kit.Touched) -> kit.Extents:
    call = touched.call
    slices, height, width, input_h, input_w = call.params(
        "slices", "height", "width", "input_h", "input_w"
    )
    pair = 2 * _FLOAT_BYTES
    tables = fourier_f32.plan_bytes(width)
    if height > 1:
        tables["column_order"] = 2 * height
        tables["column_twiddles"] = pair * max(height * 3 // 4, 1)
    kept = [call.find(part.name.lower()) for part in Kept]
    size = kit.whole(slices * height * (width // 2 + 1), _FLOAT_BYTES)
    rows, columns = min(height, input_h), min(width, input_w)
    last = ((slices - 1) * input_h + rows - 1) * input_w + columns
    return kit.Extents(
        {0: kit.Extent(0, _FLOAT_BYTES * last, touched=_FLOAT_BYTES * slices * rows * columns)},
        {place.index: size for place in kept if isinstance(place, kit.Output)},
        tables,
        scratch=_scratch_bytes(height, width),
        largest=slices * max(input_h * input_w, height * (width + 2)),
    )


_KEPT = MappingProxyType({kept.value: kept for kept in Kept})


def _read(node: kit.TfliteNode) -> kit.ReadOp:
    """The operator that reads the complex numbers, with the inputs of RFFT2D."""
    height, width = node.integers(1)
    for size in (height, width):
        if not _is_power_of_two(size) or size > _LARGEST:
            raise node.unsupported(
                f"its transform is of {height}x{width}",
                f"sizes are powers of 2 up to {_LARGEST}, the width from 2",
            )
    return kit.ReadOp(Rfft2d(height, width, (_KEPT[node.builtin],)), (0,))


def _write(op: kit.Operator[Rfft2d]) -> kit.WrittenOp:
    attributes = op.attributes
    if len(attributes.kept) > 1:
        raise ValueError("TFLite has an operator for each part that is kept")
    length = kit.int32_constant("fft_length", (attributes.height, attributes.width))
    transformed = kit.WrittenOp("RFFT2D", "Rfft2dOptions", {}, (length,))
    return kit.WrittenOp(attributes.kept[0].value, behind=transformed, between="complex64")


def _sample(rng: np.random.Generator) -> kit.Graph:
    """A spectrogram's frames, mostly; else images."""
    kept = list(Kept)[int(rng.integers(3))]
    if rng.random() < 0.6:
        height, width = 1, 2 ** int(rng.integers(1, 10))
        given = (1, int(rng.integers(1, width + 4)))
        slices = tuple(int(size) for size in rng.integers(1, 4, int(rng.integers(0, 3))))
    else:
        height, width = (2 ** int(n) for n in rng.integers(1, 6, 2))
        given = (int(rng.integers(1, height + 3)), int(rng.integers(1, width + 3)))
        slices = (2,) if rng.random() < 0.3 else ()
    x = kit.Tensor("x", (*slices, *given), kit.DType.FLOAT32)
    return kit.sample("rfft2d", Rfft2d(height, width, (kept,)), x)


SPEC = kit.Form(
    kind="rfft2d",
    attributes=Rfft2d,
    infer=_infer,
    reference=_reference,
    select=_select,
    sample=_sample,
    tflite=kit.TfliteBinding(tuple(_KEPT), _read, _write),
    macs=_macs,
    axes=_axes,
    dtype=kit.DType.FLOAT32,
    limits="float32; constant sizes, powers of 2 up to 32768; behind RFFT2D, COMPLEX_ABS, REAL or "
    "IMAG reads the complex numbers, also reshaped; near LiteRT, which computes in double",
)

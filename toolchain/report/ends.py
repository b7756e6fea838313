"""A model's inputs and outputs in `plan.json`, written and read back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from toolchain.errors import InputError
from toolchain.files.records import encode, record
from toolchain.ir import Boundary, DType, End, Quantisation, Tensor

_MOST_ELEMENTS = 1 << 31


@dataclass(frozen=True)
class _ModelSide:
    """`model` of an entry. `shape` follows from the tensor's."""

    shape: tuple[int, ...]
    dtype: DType
    quantisation: Quantisation | None
    permutation: tuple[int, ...]
    halves_to_even: bool


@dataclass(frozen=True)
class _Entry:
    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantisation: Quantisation | None
    model: _ModelSide | None


def end_json(end: End) -> dict[str, Any]:
    """The graph's tensor, and under `model` the model's own form of it."""
    tensor, own = end.tensor, end.boundary
    model = None
    if own is not None:
        model = _ModelSide(
            end.model_shape, own.dtype, own.quantisation, own.permutation, own.halves_to_even
        )
    entry = _Entry(tensor.name, tensor.shape, tensor.dtype, tensor.quantisation, model)
    found: dict[str, Any] = encode(entry)
    return found


def end_from_json(data: object, where: str) -> End:
    """Read what `end_json` wrote. Raises InputError naming the invalid field, after `where`."""
    entry = record(_Entry, data, where)
    if min(entry.shape, default=1) < 0 or math.prod(entry.shape) > _MOST_ELEMENTS:
        raise InputError(f"{where}: shape is {list(entry.shape)}, which is impossible")
    tensor = Tensor(entry.name, entry.shape, entry.dtype, entry.quantisation)
    model_side = entry.model
    for quantisation in (entry.quantisation, model_side.quantisation if model_side else None):
        if quantisation is not None and not _whole(quantisation):
            raise InputError(f"{where}: an input or output has one scale, above 0, and one zero")
    if model_side is None:
        return End(tensor)
    if model_side.permutation and sorted(model_side.permutation) != list(range(len(entry.shape))):
        raise InputError(
            f"{where}: model: permutation is {list(model_side.permutation)}, which is none"
        )
    if (
        model_side.dtype is not entry.dtype or model_side.quantisation
    ) and entry.quantisation is None:
        raise InputError(f"{where}: quantisation is null, and the model's side differs")
    return End(
        tensor,
        Boundary(
            tensor.name,
            model_side.dtype,
            model_side.quantisation,
            model_side.permutation,
            model_side.halves_to_even,
        ),
    )


def _whole(quantisation: Quantisation) -> bool:
    """Whether it is of the tensor as a whole."""
    scales, zeros = quantisation.scales, quantisation.zero_points
    return len(scales) == len(zeros) == 1 and scales[0] > 0

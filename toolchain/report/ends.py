"""A model's inputs and outputs in `plan.json`, written and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolchain.ir import Boundary, DType, End, Quantisation, Tensor


def end_json(end: End) -> dict[str, Any]:
    """The graph's tensor, and under `model` the model's own form of it."""
    tensor, boundary = end.tensor, end.boundary
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "dtype": tensor.dtype.value,
        "quantisation": _quantisation_json(tensor.quantisation),
        "model": None
        if boundary is None
        else {
            "shape": list(end.model_shape),
            "dtype": boundary.dtype.value,
            "quantisation": _quantisation_json(boundary.quantisation),
            "permutation": list(boundary.permutation),
            "halves_to_even": boundary.halves_to_even,
        },
    }


def end_from_json(data: Mapping[str, Any]) -> End:
    """Raises KeyError, TypeError or ValueError where `data` is not what `end_json` wrote."""
    tensor = Tensor(
        str(data["name"]),
        tuple(int(d) for d in data["shape"]),
        DType(data["dtype"]),
        _quantisation(data["quantisation"]),
    )
    own = data["model"]
    if own is None:
        return End(tensor)
    return End(
        tensor,
        Boundary(
            tensor=tensor.name,
            dtype=DType(own["dtype"]),
            quantisation=_quantisation(own["quantisation"]),
            permutation=tuple(int(axis) for axis in own["permutation"]),
            halves_to_even=bool(own["halves_to_even"]),
        ),
    )


def _quantisation_json(quantisation: Quantisation | None) -> dict[str, Any] | None:
    if quantisation is None:
        return None
    return {
        "scales": list(quantisation.scales),
        "zero_points": list(quantisation.zero_points),
        "axis": quantisation.axis,
    }


def _quantisation(data: Mapping[str, Any] | None) -> Quantisation | None:
    if data is None:
        return None
    return Quantisation(
        tuple(float(s) for s in data["scales"]),
        tuple(int(z) for z in data["zero_points"]),
        data["axis"],
    )

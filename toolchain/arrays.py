"""Arrays from files that people have: .npy, .npz, raw bytes."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.ir import End

Array = NDArray[np.generic]


def read_sequence(files: Sequence[Path], ends: Sequence[End]) -> list[dict[str, Array]]:
    """Inputs by name, one inference after another.

    From one file for each input in the model's order, or one .npz. A file holds the data of one
    inference or of several. Raises InputError, naming file and input, for data of another size or
    type, and where inputs have data for different numbers of inferences.
    """
    if len(files) == 1 and files[0].suffix == ".npz":
        read = _from_npz(files[0], ends)
    elif len(files) != len(ends):
        names = ", ".join(end.name for end in ends)
        raise InputError(f"{len(files)} input files for {len(ends)} inputs ({names})")
    else:
        pairs = zip(files, ends, strict=True)
        read = {end.name: _fitted(_read(file, end), file, end) for file, end in pairs}
    counts = {len(values) for values in read.values()}
    if len(counts) > 1:
        raise InputError("the inputs hold data for different numbers of inferences")
    return [{name: values[i] for name, values in read.items()} for i in range(max(counts))]


def _from_npz(file: Path, ends: Sequence[End]) -> dict[str, Array]:
    try:
        with np.load(file, allow_pickle=False) as data:
            arrays = {name: data[name] for name in data.files}
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{file} is not an .npz of arrays: {error}") from error
    missing = [end.name for end in ends if end.name not in arrays]
    if missing and len(arrays) == len(ends) == 1:
        arrays = {ends[0].name: next(iter(arrays.values()))}
    elif missing:
        raise InputError(f"{file} has no array {missing[0]!r}; it has: {', '.join(arrays)}")
    return {end.name: _fitted(arrays[end.name], file, end) for end in ends}


def _read(file: Path, end: End) -> Array:
    try:
        if file.suffix == ".npy":
            loaded: Array = np.load(file, allow_pickle=False)
            return loaded
        raw = file.read_bytes()
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    dtype = end.model_dtype.numpy.newbyteorder("<")
    if not raw or len(raw) % (end.tensor.elements * dtype.itemsize):
        raise InputError(
            f"{file} holds {len(raw)} bytes; input {end.name!r}, "
            f"{end.model_dtype.value}{list(end.model_shape)}, takes "
            f"{end.tensor.elements * dtype.itemsize}"
        )
    return np.frombuffer(raw, dtype)


def _fitted(values: Array, file: Path, end: End) -> Array:
    """`values` in the input's shape and type, inference by inference.

    A float array may hold exact integers.
    """
    wanted = end.model_dtype.numpy
    if not values.size or values.size % end.tensor.elements:
        raise InputError(
            f"{file}: input {end.name!r} takes shape {list(end.model_shape)}, "
            f"not {list(values.shape)}"
        )
    if values.dtype.kind not in "iufb":
        raise InputError(f"{file}: input {end.name!r} takes numbers, not {values.dtype}")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{file}: input {end.name!r} holds NaN or infinity")
    fitted: Array = values.astype(wanted, copy=False)
    if wanted.kind != "f" and not np.array_equal(fitted, values):
        raise InputError(
            f"{file}: input {end.name!r} takes {end.model_dtype.value}, and some of the "
            f"{values.dtype} values do not fit it"
        )
    return fitted.reshape((-1, *end.model_shape))

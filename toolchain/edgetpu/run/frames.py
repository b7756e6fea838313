"""Inputs and outputs of a run: frames from files or at random, requests at their rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from toolchain.edgetpu.run.backends import Input, input_details, inputs_of
from toolchain.edgetpu.run.folder import PipelineFolder, RateFolder
from toolchain.edgetpu.run.runner import Answer, Request, Tensors
from toolchain.edgetpu.run.simulate import Arrivals
from toolchain.errors import InputError
from toolchain.files.arrays import read_array
from toolchain.ops.spec import Array


def frames_of(
    folder: PipelineFolder, paths: Sequence[Path], count: int, seed: int = 0
) -> tuple[Iterator[Tensors], int]:
    """Frames, and their number.

    `paths`: .npy or .npz files, one per model input in order; an array with one more dimension
    holds one frame in each row. Without files, `count` frames of random numbers. Raises InputError
    if a file does not fit the model.
    """
    return _frames(input_details(folder), paths, count, seed)


def _frames(
    details: Sequence[Input], paths: Sequence[Path], count: int, seed: int = 0
) -> tuple[Iterator[Tensors], int]:
    """The frames of `frames_of`, for inputs with these names, shapes and types."""
    if not paths:
        return _random(details, count, seed), count
    if len(paths) != len(details):
        names = ", ".join(name for name, _, _ in details)
        raise InputError(f"{len(paths)} input files for {len(details)} inputs ({names})")
    columns = {
        name: _column(path, name, shape, dtype)
        for path, (name, shape, dtype) in zip(paths, details, strict=True)
    }
    sizes = {len(column) for column in columns.values()}
    if len(sizes) != 1:
        raise InputError("the input files hold different numbers of frames")
    rows = sizes.pop()
    total = max(count, rows) if rows == 1 else rows
    return (
        {name: column[frame % rows] for name, column in columns.items()} for frame in range(total)
    ), total


def _random(details: Sequence[Input], count: int, seed: int) -> Iterator[Tensors]:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        frame = {}
        for name, shape, dtype in details:
            kind: np.dtype[Any] = np.dtype(dtype)
            if kind.kind in "iu":
                bounds = np.iinfo(kind)
                frame[name] = rng.integers(bounds.min, bounds.max, shape, kind, endpoint=True)
            else:
                frame[name] = rng.standard_normal(shape).astype(kind)
        yield frame


def _column(path: Path, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Frames of one input: (frames, *shape)."""
    array = read_array(path, partial(_check_frames, path=path, name=name, shape=shape))
    if array.dtype != np.dtype(dtype):
        raise InputError(f"{path} holds {array.dtype}, input {name!r} is {np.dtype(dtype)}")
    return array.reshape(-1, *shape)


def _check_frames(given: tuple[int, ...], path: Path, name: str, shape: tuple[int, ...]) -> None:
    """Raises InputError for an array that holds no frames: one, several, or along their axis 0."""
    several = given[1:] == shape and len(given) == len(shape) + 1 and given[0] > 0
    along = len(given) == len(shape) and shape[:1] == (1,) and (1, *given[1:]) == shape
    if given != shape and not several and not (along and given[0] > 0):
        raise InputError(
            f"{path} has shape {list(given)}, input {name!r} needs {list(shape)} a frame"
        )


def requests_of(
    rates: Sequence[float], counts: Sequence[int], arrivals: Arrivals, seed: int
) -> list[Request]:
    """So many requests of each model, at its rate a second, in the order in which they come."""
    rng = np.random.default_rng(seed)
    requests = []
    for model, (rate, count) in enumerate(zip(rates, counts, strict=True)):
        apart = np.full(count, 1 / rate)
        if arrivals is Arrivals.POISSON:
            apart = rng.exponential(1 / rate, count)
        times = np.cumsum(apart)
        requests += [Request(model, number, float(at)) for number, at in enumerate(times)]
    return sorted(requests, key=lambda request: (request.at_s, request.model))


def frames_by_model(
    folder: RateFolder, paths: Sequence[Path], count: int, seed: int
) -> list[list[Tensors]]:
    """Frames of each model: `count` random ones, or those of `paths`, a file for each input, the
    first model's first. Raises InputError as `frames_of`.
    """
    sizes = [len(model.inputs) for model in folder.models]
    if paths and len(paths) != sum(sizes):
        names = ", ".join(f"{m.name}/{name}" for m in folder.models for name in m.inputs)
        raise InputError(f"{len(paths)} input files for {sum(sizes)} inputs ({names})")
    by_model, at = [], 0
    for model, size in zip(folder.models, sizes, strict=True):
        own = paths[at : at + size] if paths else ()
        given = inputs_of(folder.path, model)
        frames, _ = _frames(given, own, 1 if own else count, seed + at)
        by_model.append(list(frames))
        at += size
    return by_model


def paired(
    requests: Iterable[Request], frames: Sequence[Sequence[Tensors]]
) -> Iterator[tuple[Request, Tensors]]:
    """Each request with its frame: those of a model, `frames`, in turn."""
    for request in requests:
        given = frames[request.model]
        yield request, given[request.number % len(given)]


def outputs_of(folder: RateFolder, answers: Sequence[Answer]) -> dict[str, Array]:
    """The outputs of each model under MODEL/NAME, stacked in the order of its requests."""
    columns = {}
    for number, model in enumerate(folder.models):
        own = [answer for answer in answers if answer.request.model == number]
        own.sort(key=lambda answer: answer.request.number)
        for place, name in enumerate(model.outputs):
            columns[f"{model.name}/{name}"] = np.stack([answer.outputs[place] for answer in own])
    return columns


def latencies(answers: Sequence[Answer], models: int) -> list[Mapping[str, float | None]]:
    """By model: requests, mean and 99th percentile in ms; None without requests."""
    rows: list[Mapping[str, float | None]] = []
    for model in range(models):
        times = [answer.latency_ms for answer in answers if answer.request.model == model]
        mean = float(np.mean(times)) if times else None
        tail = float(np.percentile(times, 99)) if times else None
        rows.append({"requests": len(times), "mean_ms": mean, "p99_ms": tail})
    return rows

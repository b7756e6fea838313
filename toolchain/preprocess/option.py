"""The text of `--preprocess`: a kind, then parameters, as in `audio:step_ms=20,stride=2`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias, get_type_hints

from toolchain.errors import InputError, did_you_mean
from toolchain.files.records import decode, encode, record
from toolchain.ir import Tensor
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import AudioInput, BoundAudio
from toolchain.preprocess.image import BoundImage, ImageInput, PixelFormat, Resize

Preprocess: TypeAlias = AudioInput | ImageInput
"""The source of a model's input."""
Bound: TypeAlias = BoundAudio | BoundImage
"""A source for one input."""


def _switch(text: str) -> bool:
    return {"on": True, "off": False}[text]


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(part) for part in text.split("/"))


_Reader: TypeAlias = tuple[Callable[[str], Any], str]
_READERS: Mapping[object, _Reader] = {
    bool: (_switch, "on or off"),
    int: (int, "a whole number"),
    float: (float, "a number"),
    tuple[float, ...]: (_numbers, "one number, or one for each channel: 0.5/0.4/0.4"),
    PixelFormat: (PixelFormat, f"one of {', '.join(PixelFormat)}"),
    Resize: (Resize, f"one of {', '.join(Resize)}"),
}
_AUDIO, _IMAGE = "audio", "image"
_STRIDE = {"stride": _READERS[int]}


def preprocess(text: str) -> Preprocess:
    """The value of `--preprocess`. Raises InputError for an unknown kind or parameter, or a value
    beyond its limits.
    """
    kind, _, rest = text.partition(":")
    if kind == _AUDIO:
        given = _values(kind, rest, {**_readers(AudioFeatures), **_STRIDE})
        stride = given.pop("stride", None)
        return AudioInput(AudioFeatures(**given), stride)
    if kind == _IMAGE:
        return ImageInput(**_values(kind, rest, _readers(ImageInput)))
    raise InputError(f"--preprocess {text!r}: it begins with {_AUDIO} or {_IMAGE}")


def bound_source(source: Preprocess, tensor: Tensor, *, stateful: bool) -> Bound:
    """The source for a model's input. Raises InputError where it does not suit it."""
    if isinstance(source, AudioInput):
        return source.bound(tensor, stateful=stateful)
    return source.bound(tensor)


def preprocess_json(source: Preprocess) -> dict[str, Any]:
    """The parameters under their kind, as a compiled folder keeps them."""
    return {_AUDIO if isinstance(source, AudioInput) else _IMAGE: encode(source)}


def preprocess_from_json(data: object, where: str) -> Preprocess:
    """The inverse of `preprocess_json`. Raises InputError naming the field that is wrong."""
    given = decode(Mapping[str, Any], data, where)
    kind = "".join(given)
    if kind == _AUDIO:
        return record(AudioInput, given[kind], f"{where}.{kind}")
    if kind == _IMAGE:
        return record(ImageInput, given[kind], f"{where}.{kind}")
    raise InputError(f"{where} is of {kind!r}: it is {_AUDIO} or {_IMAGE}")


def _readers(parameters: type) -> Mapping[str, _Reader]:
    hints = get_type_hints(parameters)
    return {field.name: _READERS[hints[field.name]] for field in fields(parameters)}


def _values(kind: str, text: str, readers: Mapping[str, _Reader]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if not equals or name in values:
            raise InputError(
                f"--preprocess {kind}: {part!r} is no parameter; write each once, as name=value"
            )
        if name not in readers:
            known = f"{', '.join(sorted(readers))}{did_you_mean(name, readers)}"
            raise InputError(f"--preprocess {kind}: {name!r} is unknown; there are: {known}")
        read, form = readers[name]
        try:
            values[name] = read(value)
        except (KeyError, ValueError):
            raise InputError(f"--preprocess {kind}: {name}={value} is not {form}") from None
    return values

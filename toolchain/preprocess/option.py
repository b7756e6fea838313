"""The text of `--preprocess`: a kind, then parameters, as in `audio:step_ms=20,stride=2`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias, get_type_hints

from toolchain.errors import InputError, did_you_mean
from toolchain.preprocess.audio import AudioFeatures
from toolchain.preprocess.audio_input import AudioInput
from toolchain.preprocess.image import ImageInput, PixelFormat, Resize

Preprocess: TypeAlias = AudioInput | ImageInput
"""The source of a model's input."""


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
_STRIDE = {"stride": _READERS[int]}


def preprocess(text: str) -> Preprocess:
    """The value of `--preprocess`. Raises InputError for an unknown kind or parameter, or a value
    beyond its limits.
    """
    kind, _, rest = text.partition(":")
    if kind == "audio":
        given = _values(kind, rest, {**_readers(AudioFeatures), **_STRIDE})
        stride = given.pop("stride", None)
        return AudioInput(AudioFeatures(**given), stride)
    if kind == "image":
        return ImageInput(**_values(kind, rest, _readers(ImageInput)))
    raise InputError(f"--preprocess {text!r}: it begins with audio or image")


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

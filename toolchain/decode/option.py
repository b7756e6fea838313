"""The text of `--decode`: a kind, a file, parameters, as in `yolo:anchors.toml,classes=3`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias, get_origin, get_type_hints

from toolchain.decode.ssd import Ssd, beside
from toolchain.decode.yolo import Yolo
from toolchain.errors import InputError, did_you_mean
from toolchain.files.records import read_toml, record

Kind: TypeAlias = Ssd | Yolo
_KINDS: Mapping[str, type[Kind]] = {"ssd": Ssd, "yolo": Yolo}
_FILE = ".toml"
_LISTS = ("grid", "image")


@dataclass(frozen=True)
class Decode:
    """How boxes are decoded. `text` is what asks for it."""

    text: str
    kind: Kind

    def __str__(self) -> str:
        return self.text


def decoding(
    text: str,
    score_threshold: float | None = None,
    iou_threshold: float | None = None,
    max_detections: int | None = None,
) -> Decode:
    """The value of `--decode`, with the thresholds that options give. Raises InputError for an
    unknown kind or parameter, or a value beyond its limits.
    """
    name, _, rest = text.partition(":")
    if name not in _KINDS:
        raise InputError(f"--decode {text!r}: it begins with {' or '.join(_KINDS)}")
    options = {
        "score_threshold": score_threshold,
        "iou_threshold": iou_threshold,
        "max_detections": max_detections,
    }
    asked = {key: value for key, value in options.items() if value is not None}
    made = _read(_KINDS[name], name, rest, asked)
    words = ",".join([*filter(None, [rest]), *(f"{key}={value}" for key, value in asked.items())])
    return Decode(f"{name}:{words}" if words else name, made)


def _read(kind: type[Kind], name: str, text: str, asked: Mapping[str, Any]) -> Kind:
    given: dict[str, Any] = {}
    where = f"--decode {name}"
    folder: Path | None = None
    for part in filter(None, text.split(",")):
        key, equals, value = part.partition("=")
        if equals:
            _put(given, key, _plain(kind, key, value, where), where)
        elif part.endswith(_FILE):
            file = Path(part)
            for key, entry in read_toml(file).items():
                _put(given, key, entry, part)
                folder = file.parent if key == "anchors" else folder
            where = part
        else:
            raise InputError(
                f"{where}: {part!r} is neither a {_FILE} file nor a parameter; write name=value"
            )
    made = record(kind, {**given, **asked}, where)
    return beside(made, folder) if isinstance(made, Ssd) and folder is not None else made


def _put(given: dict[str, Any], key: str, value: Any, where: str) -> None:
    if key in given:
        raise InputError(f"{where}: {key} is given twice")
    given[key] = value


def _plain(kind: type[Kind], key: str, value: str, where: str) -> Any:
    """A parameter of the command line as a TOML file would have it."""
    hints = get_type_hints(kind)
    known = [field.name for field in fields(kind)]
    if key not in known:
        listed = f"{', '.join(sorted(known))}{did_you_mean(key, known)}"
        raise InputError(f"{where}: {key!r} is unknown; there are: {listed}")
    if hints[key] in (int, float):
        try:
            return hints[key](value)
        except ValueError:
            number = "a whole number" if hints[key] is int else "a number"
            raise InputError(f"{where}: {key}={value} is not {number}") from None
    if hints[key] is bool:
        if value not in ("on", "off"):
            raise InputError(f"{where}: {key}={value} is not on or off")
        return value == "on"
    if key == "outputs":
        return value.split("/")
    if get_origin(hints[key]) is tuple or key in _LISTS:
        raise InputError(
            f"{where}: {key} is a list or a table; write it in a file, {where}:FILE{_FILE}"
        )
    return value

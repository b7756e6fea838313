"""JSON and TOML files as typed values: limits on what is parsed, and errors that name the field.

`decode` turns parsed data into dataclasses by their annotations, and `encode` dataclasses into such
data: a file's fields are defined in one place, the class that they fill.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
import types
from collections import Counter
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from toolchain.errors import InputError, did_you_mean
from toolchain.files.bounded import read_bounded

LARGEST_JSON_BYTES = 1 << 26
"""Parsed, a list in JSON takes twenty times its bytes."""
LARGEST_TOML_BYTES = 1 << 20
DEEPEST = 64
"""Limit on the nesting of lists and objects."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_SHOWN = 60
T = TypeVar("T")


@dataclass(frozen=True)
class Form:
    """The form of a text, `Annotated[str, Form(...)]`: all of it matches `pattern`, and nothing in
    it is a control character, of direction included. `meaning` ends the error's sentence.
    """

    pattern: str
    meaning: str

    def check(self, text: str, where: str) -> None:
        """Raises InputError for another text."""
        if not text.isprintable() or not re.fullmatch(self.pattern, text):
            raise InputError(f"{where} is {_shown(text)}, not {self.meaning}")


def read_json(file: Path) -> Any:
    """The content of a JSON file. Raises InputError if it cannot be read, and as `parse_json`
    does.
    """
    return parse_json(read_bounded(file, LARGEST_JSON_BYTES), str(file))


def read_toml(file: Path) -> dict[str, Any]:
    """The content of a TOML file. Raises InputError if it cannot be read or is not TOML."""
    text = _text(read_bounded(file, LARGEST_TOML_BYTES), str(file))
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file} is not TOML: {error}") from error
    _check(found, str(file))
    return found


def parse_json(data: bytes, where: str) -> Any:
    """Parsed JSON: text is valid, numbers are finite, no name stands twice in an object, and
    nesting is not deeper than DEEPEST.

    `where` names the file. Raises InputError.
    """
    text = _text(data, where)
    try:
        found = json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)
    except RecursionError as error:
        raise InputError(f"{where} is nested deeper than {DEEPEST} levels") from error
    except ValueError as error:
        raise InputError(f"{where} is not JSON: {error}") from error
    _check(found, where)
    return found


def decode(kind: Any, value: object, where: str) -> Any:
    """`value` as `kind`: str (of a `Form`, if it is annotated with one), int, float, bool, an Enum,
    a Literal, a dataclass, `X | Y | None` (the first that takes it), Any, `tuple[X, ...]`,
    `frozenset[X]` or `Mapping[str, X]`.

    Fields with defaults may be missing, others may not, and unknown fields are refused. Raises
    InputError naming the field, after `where`.
    """
    if kind is Any:
        return value
    if isinstance(kind, type) and is_dataclass(kind):
        return record(kind, value, where)
    origin = get_origin(kind)
    if origin is Annotated:
        plain, form = get_args(kind)
        found = decode(plain, value, where)
        form.check(found, where)
        return found
    if origin in (Union, types.UnionType):
        others = [k for k in get_args(kind) if k is not type(None)]
        return None if value is None else _one_that_fits(others, value, where)
    if origin is tuple:
        return _tuple(get_args(kind), value, where)
    if origin is frozenset:
        return frozenset(_tuple((*get_args(kind), ...), value, where))
    if origin in (Mapping, dict) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        entries = _object(value, where)
        key_kind, of = get_args(kind)
        for key in entries:
            decode(key_kind, key, f"{where}: a name")
        names = {key: key if key.isprintable() else repr(key) for key in entries}
        return {key: decode(of, entry, f"{where}.{names[key]}") for key, entry in entries.items()}
    if origin is Literal:
        return _one_of(value, get_args(kind), where)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(_one_of(value, [member.value for member in kind], where))
    return _plain(kind, value, where)


def encode(value: Any) -> Any:
    """The inverse of `decode`: what JSON holds, with a dataclass's fields in their order."""
    if is_dataclass(value):
        return {f.name: encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {name: encode(entry) for name, entry in value.items()}
    if isinstance(value, tuple | frozenset):
        return [encode(entry) for entry in value]
    return value


def record(kind: type[T], value: object, where: str) -> T:
    """An object as a dataclass; as `decode`."""
    given = _object(value, where)
    hints: dict[str, Any] = _hints(kind)  # type: ignore[arg-type]
    declared = {f.name: f for f in fields(kind) if f.init}  # type: ignore[arg-type]
    for name in given:
        if name not in declared:
            raise InputError(
                f"{where}: the field {name!r} is unknown; there are {', '.join(declared)}"
                f"{did_you_mean(name, declared)}"
            )
    found = {}
    for name, f in declared.items():
        if name in given:
            found[name] = decode(hints[name], given[name], f"{where}: {name}")
        elif f.default is MISSING and f.default_factory is MISSING:
            raise InputError(f"{where}: the field {name!r} is missing")
    return kind(**found)


def field_of(value: object, name: str, kind: Any, where: str, default: Any = MISSING) -> Any:
    """One field of an object, as `decode`. Without a default it must be there."""
    given = _object(value, where)
    if name in given:
        return decode(kind, given[name], f"{where}: {name}")
    if default is MISSING:
        raise InputError(f"{where}: the field {name!r} is missing")
    return default


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _one_that_fits(kinds: list[Any], value: object, where: str) -> Any:
    """`value` as the first of `kinds` that takes it; the error is the last one's."""
    for kind in kinds[:-1]:
        try:
            return decode(kind, value, where)
        except InputError:
            continue
    return decode(kinds[-1], value, where)


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} is {_shown(value)}, not an object with fields")
    return value


def _tuple(kinds: tuple[Any, ...], value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InputError(f"{where} is {_shown(value)}, not a list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(decode(kinds[0], entry, f"{where}[{i}]") for i, entry in enumerate(value))
    if len(value) != len(kinds):
        raise InputError(f"{where} has {len(value)} entries, not {len(kinds)}")
    pairs = enumerate(zip(kinds, value, strict=True))
    return tuple(decode(kind, entry, f"{where}[{i}]") for i, (kind, entry) in pairs)


def _one_of(value: object, choices: Any, where: str) -> Any:
    for choice in choices:
        if type(choice) is type(value) and choice == value:
            return choice
    raise InputError(f"{where} is {_shown(value)}, not one of {', '.join(map(repr, choices))}")


def _plain(kind: Any, value: object, where: str) -> Any:
    if kind is bool and isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str):
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int and number and isinstance(value, int):
        if _LEAST <= value <= _MOST:
            return value
        raise InputError(f"{where} is {_shown(value)}, beyond 64 bits")
    if kind is float and number:
        assert isinstance(value, int | float)
        try:
            found = float(value)
        except OverflowError:
            found = math.inf
        if math.isfinite(found):
            return found
        raise InputError(f"{where} is {_shown(value)}, too large")
    wanted = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}
    if kind not in wanted:
        raise TypeError(f"{where}: {kind} is no type that files hold")
    raise InputError(f"{where} is {_shown(value)}, not {wanted[kind]}")


def _shown(value: object) -> str:
    """A value in an error: not too long, whatever it holds."""
    try:
        text = json.dumps(value, default=str)
    except (ValueError, TypeError, RecursionError):  # an integer of more digits than are printed
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: byte {error.start} is no text (UTF-8)") from error


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {_shown(twice)} stands twice in an object")
    return found


def _check(found: object, where: str) -> None:
    """Depth, text and numbers of all there is."""
    level, depth = [found], 0
    while level:
        if depth > DEEPEST:
            raise InputError(f"{where} is nested deeper than {DEEPEST} levels")
        following: list[object] = []
        for value in level:
            if isinstance(value, dict):
                following += value.keys()
                following += value.values()
            elif isinstance(value, list):
                following += value
            elif isinstance(value, int | float) and not _is_finite(value):
                raise InputError(f"{where} holds a number that is too large or none")
            elif isinstance(value, str) and not value.isascii():
                _check_text(value, where)
        level, depth = following, depth + 1


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond float64
        return False


def _check_text(value: str, where: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"{where} holds the half of a character, {value[error.start]!r}, in {_shown(value)}"
        ) from error

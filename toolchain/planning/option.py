"""How a field is set in words: on a command line, or in the file of a sweep.

The field tells its option itself, `ram_bytes: int | None = option(None, Option("--ram", ...))`, and
whoever takes options derives them from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from toolchain.errors import InputError

T = TypeVar("T")
_METADATA = "option"


def _as_it_is(given: Any, name: str) -> Any:
    return given


@dataclass(frozen=True)
class Option:
    """The option that sets a field.

    name    as `--ram`
    help    what it does
    unit    what is written behind the name, as `BYTES`; '' for a switch, and for a plain word
    takes   the type of that: str, int, float, Path, list (words, one each time), bool (a switch)
    read    makes the field's value of it, told the name for its InputError
    write   the word for a value of the field; None where there is none
    values  the words that there are, for those to be completed
    least   the smallest number
    parts   options that say more of this one; `read` takes their values by their keys
    panel   the heading under which help lists it; '' among those that everybody needs
    """

    name: str
    help: str
    unit: str = ""
    takes: type = str
    read: Callable[..., Any] = _as_it_is
    write: Callable[[Any], str] | None = str
    values: tuple[str, ...] = ()
    least: float | None = None
    parts: tuple[Option, ...] = ()
    panel: str = ""

    @property
    def key(self) -> str:
        """The name as one of Python's: `max_slowdown`."""
        return self.name.removeprefix("--").replace("-", "_")

    def left_out(self, default: Any) -> Any:
        """The command line's value where the option is left out."""
        if self.takes is bool:
            return False
        return None if default in (None, ()) or self.write is None else self.write(default)


def option(default: T, told: Option) -> T:
    """A field of a dataclass that `told` sets."""
    return field(default=default, metadata={_METADATA: told})


@dataclass(frozen=True)
class FieldOption:
    """A field that an option sets, and its default."""

    field: str
    default: Any
    option: Option


def options_of(kind: Any) -> Iterator[FieldOption]:
    """The options of a dataclass, in the order of its fields. Fields without an option are left
    out."""
    for known in fields(kind):
        if _METADATA in known.metadata:
            yield FieldOption(known.name, known.default, known.metadata[_METADATA])


def read_options(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the values given for options set, by their keys.

    Raises InputError for a value that an option cannot read, and for a part without its option.
    """
    fields_set: dict[str, Any] = {}
    for known in options_of(kind):
        told = known.option
        usual = told.left_out(known.default)
        parts = {part.key: given.get(part.key) for part in told.parts}
        if (value := given.get(told.key, usual)) != usual:
            fields_set[known.field] = told.read(value, told.name, **parts)
            continue
        for part in told.parts:
            if parts[part.key] is not None:
                raise InputError(f"{part.name} is for {told.name}, which is not given")
    return fields_set


def option_words(value: Any) -> list[str]:
    """The words of a command line that set the fields of a dataclass as they are in `value`."""
    words: list[str] = []
    for known in options_of(value):
        told, present = known.option, getattr(value, known.field)
        if present == known.default or told.write is None:
            continue
        if told.takes is bool:
            words.append(told.name)
        else:
            for one in present if told.takes is list else [present]:
                words += [told.name, told.write(one)]
    return words


def per_cent(text: str, name: str) -> float:
    """`5%` or `5`: five hundredths. The one reader of percentages, for every option.

    A number below 1 without its sign, as 0.05, is refused: some read it as 5%, some as 0.05%.
    """
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(%?)", text.strip())
    if match is None:
        raise InputError(f"{name} {text!r} is no percentage; write it as 5%")
    value = float(match[1])
    if 0 < value < 1 and not match[2]:
        raise InputError(
            f"{name} {text} could be read as {100 * value:g}% or as {value:g}%: "
            "write the percent sign",
            remedies=[f"{name} {100 * value:g}%", f"{name} {value:g}%"],
        )
    return value / 100

"""docs/json.md as a check: the documents of each command, and the shapes that they are made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs" / "json.md"
_PLAIN: Mapping[str, tuple[type, ...]] = {
    "text": (str,),
    "int": (int,),
    "number": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}
_SECTION = re.compile(r"^### ([^\n]+)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
Fields = Mapping[str, tuple[str, bool]]
"""The type of each field, and whether it may be missing."""


@cache
def sections() -> Mapping[str, tuple[str, ...]]:
    """The blocks of each heading of the third level: commands and shapes."""
    return {
        name: tuple(_FENCE.findall(text))
        for name, text in _SECTION.findall(PAGE.read_text(encoding="utf-8"))
    }


@cache
def fields_of(block: str) -> Fields:
    found: dict[str, tuple[str, bool]] = {}
    for line in block.splitlines():
        if line.startswith("..."):
            found |= shape(line.removeprefix("..."))
        else:
            name, _, kind = line.partition(": ")
            found[name.removesuffix("?")] = (kind, name.endswith("?"))
    return found


@cache
def shape(name: str) -> Fields:
    (block,) = sections()[name]
    return fields_of(block)


def problems(command: str, document: Mapping[str, Any]) -> list[str]:
    """What is wrong with a document of a command (`thimble edgetpu plan`), by the alternative that
    fits best; empty where one fits.
    """
    given = {name: value for name, value in document.items() if name != "json_version"}
    if given.keys() == {"error"}:
        return list(_unlike({"error": ("Error", False)}, given, "", whole=True))
    error = {"error": ("Error", True)}
    found = [
        list(_unlike({**fields_of(block), **error}, given, "", whole="error" not in given))
        for block in sections()[command]
    ]
    return min(found, key=len)


def _unlike(fields: Fields, value: object, where: str, *, whole: bool) -> Iterator[str]:
    """`whole`: fields that are missing are told, too."""
    if not isinstance(value, dict):
        yield f"{where}: {value!r:.60} is no object"
        return
    for name in value.keys() - fields.keys():
        yield f"{where}.{name} is not on the page"
    for name, (kind, may_miss) in fields.items():
        if name in value:
            yield from _other(kind, value[name], f"{where}.{name}")
        elif whole and not may_miss:
            yield f"{where}.{name} is missing"


def _other(kind: str, value: object, where: str) -> Iterator[str]:
    choices = _choices(kind)
    if len(choices) > 1:
        told = [list(_other(one, value, where)) for one in choices]
        yield from min(told, key=len)
    elif kind.startswith("["):
        if isinstance(value, list):
            for place, one in enumerate(value):
                yield from _other(kind[1:-1], one, f"{where}[{place}]")
        else:
            yield f"{where}: {value!r:.60} is no list"
    elif kind.startswith("{"):
        if isinstance(value, dict):
            for name, one in value.items():
                yield from _other(kind[1:-1], one, f"{where}.{name}")
        else:
            yield f"{where}: {value!r:.60} is no object"
    elif kind in _PLAIN:
        is_bool = isinstance(value, bool) and kind != "bool"
        if is_bool or not isinstance(value, _PLAIN[kind]):
            yield f"{where}: {value!r:.60} is not {kind}"
    elif kind != "any":
        yield from _unlike(shape(kind), value, where, whole=True)


@cache
def _choices(kind: str) -> tuple[str, ...]:
    """The alternatives of a type, at its outermost level."""
    depth, parts = 0, [""]
    for letter in kind:
        depth += (letter in "[{") - (letter in "]}")
        if letter == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.strip() for part in parts)

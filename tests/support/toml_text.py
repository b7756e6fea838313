"""Writes what `tomllib` reads, for files that differ in one field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def as_toml(table: Mapping[str, Any]) -> str:
    return "\n".join(_lines(table, ())) + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {k: v for k, v in table.items() if isinstance(v, Mapping)}
    lists = {k: v for k, v in table.items() if _is_tables(v)}
    if path:
        yield f"[{'.'.join(map(_text, path))}]"
    for key, value in table.items():
        if key not in tables and key not in lists:
            yield f"{_text(key)} = {_value(value)}"
    for key, inner in tables.items():
        yield from _lines(inner, (*path, key))
    for key, entries in lists.items():
        for entry in entries:
            yield f"[[{'.'.join(map(_text, (*path, key)))}]]"
            yield from _lines(entry, ())


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_value, value))}]"
    return str(value)


def _text(value: str) -> str:
    assert not set('"\\\n') & set(value)
    return f'"{value}"'

#!/usr/bin/env python3
"""Renews `toolchain/frontends/tflite/schema.json` from LiteRT's package, which brings its schema.

    scripts/renew_tflite_schema.py [--write]

Without --write it says whether the file is the installed package's, and exits 1 where it is not.
The file has the enumerations, and of each table of options the fields in their slots: name, letter
of the type (struct's; `[i` a vector, `s` a string, `` what Thimble does not read) and default.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
from pathlib import Path
from typing import Any

import ai_edge_litert.schema_py_generated as schema
from flatbuffers import number_types

FILE = Path(__file__).resolve().parents[1] / "toolchain" / "frontends" / "tflite" / "schema.json"
_SLOT = re.compile(r"Offset\((\d+)\)")
_NUMBER = re.compile(r"Get(VectorAsNumpy)?\(flatbuffers\.number_types\.(\w+)")
_LETTERS = {
    "Bool": "?",
    "Int8": "b",
    "Uint8": "B",
    "Int16": "h",
    "Uint16": "H",
    "Int32": "i",
    "Uint32": "I",
    "Int64": "q",
    "Uint64": "Q",
    "Float32": "f",
    "Float64": "d",
}
Field = list[Any]


def _members(enumeration: type) -> dict[str, int]:
    return {k: v for k, v in vars(enumeration).items() if not k.startswith("_")}


def _field(table: type, name: str, default: object) -> tuple[int, Field]:
    """Its slot, and what the file says of it."""
    accessor = name[0].upper() + name[1:]
    source = inspect.getsource(getattr(table, accessor))
    slot = (int(_SLOT.findall(source)[0]) - 4) // 2
    whole = getattr(table, f"{accessor}AsNumpy", None)
    found = _NUMBER.search(inspect.getsource(whole) if whole else source)
    if found:
        flags = getattr(number_types, found[2])
        letter = _LETTERS[re.sub("Flags$", "", flags.__name__)]
        return slot, [name, f"[{letter}" if whole else letter, default]
    return slot, [name, "s" if "String(" in source else "", None]


def _options(name: str) -> list[Field]:
    """Its fields in the order of their slots, of which those without a name are disused."""
    table, made = getattr(schema, name), getattr(schema, f"{name}T")()
    fields = dict(_field(table, field, default) for field, default in vars(made).items())
    return [fields.get(slot, ["", "", None]) for slot in range(max(fields, default=-1) + 1)]


def current() -> dict[str, Any]:
    """The content of the file, as the installed package has it."""
    classes = {n: c for n, c in vars(schema).items() if inspect.isclass(c)}
    found = {n: _members(c) for n, c in classes.items()}
    enumerations = {
        name: members
        for name, members in found.items()
        if members and all(isinstance(number, int) for number in members.values())
    }
    tables = [name for name in enumerations["BuiltinOptions"] if name != "NONE"]
    return {"enumerations": enumerations, "options": {name: _options(name) for name in tables}}


def text(content: dict[str, Any]) -> str:
    """The file: a line for each enumeration and table."""
    parts = []
    for part, entries in content.items():
        lines = [f"    {json.dumps(name)}: {json.dumps(entry)}" for name, entry in entries.items()]
        parts.append(f'  "{part}": {{\n' + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    if parser.parse_args().write:
        FILE.write_text(text(current()), encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text(current()):
        raise SystemExit(f"{FILE} is not the installed package's: write it again with --write")


if __name__ == "__main__":
    main()

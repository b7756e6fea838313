"""Rows of a sweep's file as they are read back: the type and range of every field that is used.

The file may have been damaged, or written by another program.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from toolchain.errors import InputError
from toolchain.files.records import field_of, parse_json
from toolchain.sweep.cases import Case
from toolchain.sweep.work import Done

FIGURES = (
    *("arena_bytes", "lower_bound_bytes", "proved_optimal", "ram_bytes", "flash_bytes"),
    *("weight_bytes", "slowdown_percent", "macs", "elements", "differing"),
)
"""Fields of a command's --json that have columns of their own."""
_OTHER_KINDS: Mapping[str, Any] = {"proved_optimal": bool | None, "slowdown_percent": float | None}
_LATENCIES = ("latency", "predicted")
_LATENCY: Mapping[str, Any] = {
    "milliseconds": float | None,
    "total": float | None,
    "unit": str | None,
    "basis": str | None,
}


def done_of(case: Case, file: Path, fields: object, error: object, seconds: object) -> Done:
    """The outcome of `case`, final, from the columns of these names.

    Raises InputError that names the row and the command that computes it again.
    """
    where = f"{file}: the row of `{case.name}` (key {case.key}) is damaged"
    with _again(case, file):
        parsed = _parsed(fields, f"{where}: fields")
        if not isinstance(parsed, dict):
            raise InputError(f"{where}: fields is a {type(parsed).__name__}, not an object")
        _check_fields(parsed, f"{where}: fields")
        told = None if error == "" else _parsed(error, f"{where}: error")
        if told is not None:
            for name in ("kind", "message"):
                field_of(told, name, str, f"{where}: error")
        return Done(parsed, told, True, _amount(seconds, f"{where}: seconds"))


def figure(value: object, where: str) -> float | None:
    """A column of a figure. Raises InputError for what is neither a number nor nothing."""
    return None if value is None else _amount(value, where)


def name_of(value: object, where: str) -> str:
    """A column of text. Raises InputError for anything else."""
    if not isinstance(value, str):
        raise InputError(f"{where} is a {type(value).__name__}, not a text")
    return value


@contextmanager
def _again(case: Case, file: Path) -> Iterator[None]:
    """Adds the remedy to an error: a command for this case alone, where one can be given."""
    command = ["thimble", "sweep", case.file, "--boards", case.board, "--do", case.do]
    for name, value in case.words:
        command += ["--option", f"{name}={value}"]
    command += [] if case.runs is None else ["--runs", str(case.runs)]
    command += ["--out", str(file), "--again"]
    simple = not case.seed and not any("," in value for _, value in case.words)
    try:
        yield
    except InputError as error:
        remedy = shlex.join(command) if simple else "the same command with --again"
        raise InputError(error.message, remedies=[remedy]) from error


def _parsed(value: object, where: str) -> Any:
    return parse_json(name_of(value, where).encode("utf-8", "surrogateescape"), where)


def _check_fields(fields: Mapping[str, Any], where: str) -> None:
    field_of(fields, "model", str | None, where, None)
    for name in FIGURES:
        value = field_of(fields, name, _OTHER_KINDS.get(name, int | None), where, None)
        if name not in _OTHER_KINDS and value is not None:
            _amount(value, f"{where}: {name}")
    for name in _LATENCIES:
        latency = field_of(fields, name, Mapping[str, Any] | None, where, None)
        for part, kind in _LATENCY.items():
            value = field_of(latency or {}, part, kind, f"{where}: {name}", None)
            if isinstance(value, float):
                _amount(value, f"{where}: {name}: {part}")


def _amount(value: object, where: str) -> float:
    """A finite number that is not negative."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{where} is a {type(value).__name__}, not a finite number")
    if value < 0:
        raise InputError(f"{where} is {value}, which is negative")
    return value

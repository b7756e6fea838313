"""`--fail-on "arena > 20K"`: conditions on a result that make a command fail, for CI."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolchain.errors import GateError, InputError

_CONDITION = re.compile(
    r"\s*(?P<field>[A-Za-z_][\w.]*)\s*(?P<operator>>=|<=|==|!=|>|<)\s*"
    r"(?P<number>[-+]?[\d.,_]+(?:[eE][-+]?\d+)?)\s*(?P<unit>%|K|M|KiB|MiB|ms|dB)?\s*"
)
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_COUNTS = {"": 1.0, "K": 1e3, "M": 1e6}
_SHARES = (
    *("agreement", "accuracy", "accuracy_loss", "top_5", "macro_f1", "same_predictions"),
    *("map", "map_50", "map_75", "map_loss", "false_reject_rate"),
)
"""Fields that are shares, at most 1."""
_UNITS: Mapping[str, Mapping[str, float]] = {
    "bytes": {"": 1.0, "K": 1024.0, "KiB": 1024.0, "M": 1024.0**2, "MiB": 1024.0**2},
    "milliseconds": {"": 1.0, "ms": 1.0},
    "percent": {"": 1.0, "%": 1.0},
    "db": {"": 1.0, "dB": 1.0},
}
"""Units that a number may have, by the ending of its field; _SHARE_UNITS for _SHARES, _COUNTS for
other fields."""
_SHARE_UNITS = {"": 1.0, "%": 0.01}
_DECIBELS = "_db"
_NAMES = {
    "arena": "arena_bytes",
    "ram": "ram_bytes",
    "flash": "flash_bytes",
    "weights": "weight_bytes",
    "peak": "peak_bytes",
    "ms": "latency.milliseconds",
    "milliseconds": "latency.milliseconds",
    "cycles": "latency.total",
    "slowdown": "slowdown_percent",
    "noise": "outputs.noise_db",
    "agreement": "outputs.agreement",
}
_SHOWN = 12
_TOLD = 3
"""Rows that break a condition and are named."""


@dataclass(frozen=True)
class Gate:
    """A condition: `field` as in --json (with dots within), a comparison, a number."""

    text: str
    field: str
    comparison: str
    number: float

    def holds(self, result: Mapping[str, Any]) -> bool:
        """Whether the condition holds for any number of the field (a list has several). NaN never
        passes: it meets every condition.

        Raises InputError where the result has no such number, with those that it has.
        """
        numbers = list(_numbers(result, self.field))
        if not numbers:
            short = sorted(n for n, f in _NAMES.items() if [*_numbers(result, f)])
            known = [*_known(result, "")]
            more = ["..."] if len(known) > _SHOWN else []
            listed = ", ".join([*short, *known[:_SHOWN], *more])
            raise InputError(
                f"--fail-on {self.text!r}: the result has no number {self.field!r}; it has {listed}"
            )
        compare = _OPERATORS[self.comparison]
        return any(math.isnan(value) or compare(value, self.number) for value in numbers)


def gates(conditions: Sequence[str] | None) -> tuple[Gate, ...]:
    """Parse conditions. Raises InputError for a text that is none."""
    return tuple(_gate(text) for text in conditions or ())


def _gate(text: str) -> Gate:
    match = _CONDITION.fullmatch(text)
    try:
        number = float(match["number"].replace("_", "").replace(",", "")) if match else float("nan")
    except ValueError:
        number = float("nan")
    if match is None or number != number:
        raise InputError(f'--fail-on {text!r} is no condition like "arena > 20K" or "ms >= 12.5"')
    field = _NAMES.get(match["field"], match["field"])
    is_share = field.rpartition(".")[2] in _SHARES
    usual = _SHARE_UNITS if is_share else _COUNTS
    units = next((units for end, units in _UNITS.items() if field.endswith(end)), usual)
    unit = match["unit"] or ""
    if unit not in units:
        known = ", ".join(filter(None, units))
        raise InputError(f"--fail-on {text!r}: a number of {field} takes {known}, not {unit}")
    number *= units[unit]
    if is_share and abs(number) > 1:
        raise InputError(f"--fail-on {text!r}: {field} is at most 1, or 100%: write {number:g}%")
    return Gate(text.strip(), field, match["operator"], number)


def check(conditions: Sequence[Gate], result: Mapping[str, Any]) -> None:
    """Raise GateError, with the figures, if any of the conditions holds; InputError as `holds`."""
    failed = [gate for gate in conditions if gate.holds(result)]
    if failed:
        told = (f"{_said(gate, result)} (--fail-on {gate.text!r})" for gate in failed)
        raise GateError("; ".join(told))


def broken(
    conditions: Sequence[Gate], rows: Sequence[tuple[str, Mapping[str, Any]]]
) -> dict[str, str]:
    """The rows, by name, that break conditions, each with these conditions and its numbers."""
    told_of: dict[str, str] = {}
    for name, row in rows:
        able = [gate for gate in conditions if [*_numbers(row, gate.field)]]
        told = [f"{_said(gate, row)} (--fail-on {gate.text!r})" for gate in able if gate.holds(row)]
        if told:
            told_of[name] = "; ".join(told)
    return told_of


def check_rows(
    conditions: Sequence[Gate],
    rows: Sequence[tuple[str, Mapping[str, Any]]],
    whole: Mapping[str, Any],
) -> None:
    """As `check`, of many results, each with a name, and of figures of all of them together.

    A row without a condition's field (a model that does not compile has no arena) is passed over.
    Raises GateError naming the first rows for which one holds, InputError where nothing has the
    field.
    """
    of_whole = [gate for gate in conditions if [*_numbers(whole, gate.field)]]
    of_rows = [gate for gate in conditions if gate not in of_whole]
    for gate in of_rows:
        if not any([*_numbers(row, gate.field)] for _, row in rows):
            gate.holds({**whole, **(rows[0][1] if rows else {})})  # which says what there is
    told = [
        f"{_said(gate, whole)} (--fail-on {gate.text!r})" for gate in of_whole if gate.holds(whole)
    ]
    failed = [f"{name}: {said}" for name, said in broken(of_rows, rows).items()]
    more = [f"and {len(failed) - _TOLD} more rows"] if len(failed) > _TOLD else []
    if told or failed:
        raise GateError("; ".join([*told, *failed[:_TOLD], *more]))


def _said(gate: Gate, result: Mapping[str, Any]) -> str:
    numbers = ", ".join(f"{value:,.6g}" for value in _numbers(result, gate.field))
    return f"{gate.field} is {numbers}"


def _numbers(value: Any, field: str) -> Iterator[float]:
    """Numbers under a field; those of each entry where lists are on the way."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for entry in value:
            yield from _numbers(entry, field)
    elif field:
        name, _, rest = field.partition(".")
        if isinstance(value, Mapping) and name in value:
            if value[name] is None and name.endswith(_DECIBELS):
                yield math.inf  # nothing is lost: JSON has no infinity
            yield from _numbers(value[name], rest)
    elif isinstance(value, int | float):
        yield float(value)


def _known(value: Any, begin: str) -> Iterator[str]:
    """The names of the numbers in a result, those in lists left out."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _known(inner, f"{begin}.{name}" if begin else str(name))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield begin

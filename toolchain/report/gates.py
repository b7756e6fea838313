"""`--fail-on "arena > 20K"`: conditions on a result that make a command fail, for CI."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolchain.errors import GateError, InputError

_CONDITION = re.compile(
    r"\s*(?P<field>[A-Za-z_][\w.]*)\s*(?P<operator>>=|<=|==|!=|>|<)\s*(?P<number>[^\s%KkMm]+)\s*"
    r"(?P<unit>%|K|M|KiB|MiB|ms|dB)?\s*"
)
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_UNITS = {"K": 1024.0, "KiB": 1024.0, "M": 1024.0**2, "MiB": 1024.0**2}
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
_SHARES = ("agreement",)
"""Fields that are parts of 1, of which a condition in % is a hundredth."""
_SHOWN = 12


@dataclass(frozen=True)
class Gate:
    """A condition: `field` as in --json (with dots within), a comparison, a number."""

    text: str
    field: str
    comparison: str
    number: float

    def holds(self, result: Mapping[str, Any]) -> bool:
        """Of any of the numbers that the field has (a list has several). Raises InputError where
        the result has no such number, with those that it has.
        """
        found = list(_numbers(result, self.field))
        if not found:
            short = ", ".join(sorted(n for n, f in _NAMES.items() if [*_numbers(result, f)]))
            listed = ", ".join([*_known(result, "")][:_SHOWN])
            raise InputError(
                f"--fail-on {self.text!r}: the result has no number {self.field!r}; it has {short};"
                f" and {listed}, ..."
            )
        return any(_OPERATORS[self.comparison](value, self.number) for value in found)


def gates(conditions: Sequence[str] | None) -> tuple[Gate, ...]:
    """Raises InputError for what is no condition."""
    return tuple(_gate(text) for text in conditions or ())


def _gate(text: str) -> Gate:
    match = _CONDITION.fullmatch(text)
    try:
        number = float(match["number"].replace("_", "").replace(",", "")) if match else float("nan")
    except ValueError:
        number = float("nan")
    if match is None or number != number:
        raise InputError(f'--fail-on {text!r} is no condition like "arena > 20K" or "ms >= 12.5"')
    name = match["field"]
    unit = match["unit"] or ""
    if unit == "%" and name.rpartition(".")[2] in _SHARES:
        number /= 100
    number *= _UNITS.get(unit, 1)
    return Gate(text.strip(), _NAMES.get(name, name), match["operator"], number)


def check(conditions: Sequence[Gate], result: Mapping[str, Any]) -> None:
    """Raise GateError, with the figures, if any of the conditions holds; InputError as `holds`."""
    failed = [gate for gate in conditions if gate.holds(result)]
    if failed:
        told = (f"{_said(gate, result)} (--fail-on {gate.text!r})" for gate in failed)
        raise GateError("; ".join(told))


def _said(gate: Gate, result: Mapping[str, Any]) -> str:
    numbers = ", ".join(f"{value:,.6g}" for value in _numbers(result, gate.field))
    return f"{gate.field} is {numbers}"


def _numbers(value: Any, field: str) -> Iterator[float]:
    """What stands under a field; of each entry where lists are on the way."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        for entry in value:
            yield from _numbers(entry, field)
    elif field:
        name, _, rest = field.partition(".")
        if isinstance(value, Mapping) and name in value:
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

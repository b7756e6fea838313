"""A recording of power over time, from the CSV file that a power analyser exports."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolchain.errors import InputError
from toolchain.files.bounded import read_bounded

_LARGEST_BYTES = 1 << 29
_UNIT = re.compile(r"[\s(\[_]([munµμ]?)([sAVW])[)\]]?$", re.IGNORECASE)
_SCALES = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "μ": 1e-6, "n": 1e-9}
_NAMES = {"time": "time", "current": "current", "power": "power", "voltage": "volt"}
RECOGNISED = (
    "recognised are a first line with a column of time and one of current or power, with units, "
    "as Timestamp(ms),Current(uA) of Nordic's PPK2 and #time (s),current (A),voltage (V) of "
    "Joulescope"
)


@dataclass(frozen=True)
class Recording:
    """Power in watts at ascending times in seconds, from any beginning; arrays of one length."""

    seconds: NDArray[np.float64]
    watts: NDArray[np.float64]


@dataclass(frozen=True)
class _Column:
    index: int
    scale: float


def read_recording(file: Path, volts: float) -> Recording:
    """The recording in a CSV file. `volts`: of the supply, where the file has current alone.

    Raises InputError where no columns are recognised, a field is no number, or time goes back; it
    names the file without its folder, as a visit's file is sent.
    """
    where = file.name
    text = read_bounded(file, _LARGEST_BYTES).decode("utf-8-sig", errors="replace")
    head, _, body = text.partition("\n")
    delimiter = next((one for one in (";", "\t") if one in head), ",")
    columns = _columns(head, delimiter)
    if "time" not in columns or not columns.keys() & {"current", "power"}:
        raise InputError(f"{where}: its first line is {head.strip()!r:.120}; {RECOGNISED}")
    if delimiter == ";":
        body = body.replace(",", ".")
    names = list(columns)
    try:
        table = np.loadtxt(
            io.StringIO(body),
            delimiter=delimiter,
            usecols=[columns[name].index for name in names],
            ndmin=2,
        )
    except (ValueError, IndexError) as error:
        raise InputError(f"{where}: {error}") from error
    found = {name: table[:, i] * columns[name].scale for i, name in enumerate(names) if table.size}
    if not found or len(table) < 2:
        raise InputError(f"{where} has fewer than two samples")
    seconds = found["time"]
    if not np.all(np.isfinite(table)) or np.any(np.diff(seconds) < 0):
        raise InputError(f"{where}: a sample is no number, or time goes back")
    watts = found["power"] if "power" in found else found["current"] * found.get("voltage", volts)
    return Recording(seconds, watts)


def _columns(head: str, delimiter: str) -> dict[str, _Column]:
    """The first column of each quantity, by the names and units of the first line."""
    columns: dict[str, _Column] = {}
    for index, field in enumerate(head.split(delimiter)):
        name = field.strip().strip('"#').strip()
        what = next((key for key, word in _NAMES.items() if word in name.lower()), None)
        unit = _UNIT.search(name)
        if what is not None and what not in columns:
            columns[what] = _Column(index, _SCALES[unit[1].lower()] if unit else 1.0)
    return columns

"""NumPy arrays as C arrays: element types, and numbers in columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolchain.ir import DType

_LINE_WIDTH = 110
_INDENT = "    "


def c_type(dtype: DType) -> str:
    """The C type of an element, such as `int8_t`."""
    return dtype.c_type


def c_float(value: float) -> str:
    """A float32 as a C literal that reads back exactly. Raises ValueError if it is not finite."""
    if not np.isfinite(value):
        raise ValueError(f"{value} has no C literal")
    text = np.format_float_scientific(np.float32(value), unique=True, trim="0", exp_digits=1)
    mantissa, exponent = text.split("e")
    if -5 < int(exponent) < 7:
        text = np.format_float_positional(np.float32(value), unique=True, trim="0")
        return f"{text}f"
    return f"{mantissa}e{int(exponent)}f"


def _literals(data: NDArray[np.generic]) -> list[str]:
    flat = data.reshape(-1)
    if data.dtype == np.float32:
        return [c_float(float(value)) for value in flat]
    if data.dtype == np.int64:
        return [_int64(int(value)) for value in flat]
    if data.dtype == np.int32:
        lowest = int(np.iinfo(np.int32).min)
        return [str(v) if v != lowest else "INT32_MIN" for v in flat.tolist()]
    return [str(int(value)) for value in flat.tolist()]


def _int64(value: int) -> str:
    return "INT64_MIN" if value == np.iinfo(np.int64).min else f"INT64_C({value})"


def rows(data: NDArray[np.generic]) -> str:
    """The elements as full lines of right-aligned columns; `0` for an empty array.

    Each innermost row of a long array begins on a line of its own and fills its lines evenly.
    """
    literals = _literals(data) or ["0"]
    width = max(len(text) for text in literals)
    per_line = max(1, (_LINE_WIDTH - len(_INDENT)) // (width + 2))
    row = data.shape[-1] if data.ndim > 1 else 0
    if row < per_line // 2:
        row = len(literals)
    else:
        per_line = -(-row // -(-row // per_line))
    lines = []
    for start in range(0, len(literals), row):
        part = literals[start : start + row]
        for first in range(0, len(part), per_line):
            cells = (text.rjust(width) for text in part[first : first + per_line])
            lines.append(_INDENT + ", ".join(cells) + ",")
    return "\n".join(lines)

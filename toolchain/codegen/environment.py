"""The Jinja2 environment of generated C: filters for its numbers, arrays and types."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from toolchain.codegen.arrays import c_float, c_type, rows
from toolchain.files import templates
from toolchain.ir import Tensor

if TYPE_CHECKING:
    import jinja2


def _shape(tensor: Tensor) -> str:
    return "x".join(str(d) for d in tensor.shape) or "1"


def _thousands(number: int) -> str:
    return f"{number:,}"


def _hex_bytes(digits: str) -> str:
    """The bytes that hexadecimal digits give, as elements of a C array, eight a line."""
    cells = [f"0x{byte:02x}" for byte in bytes.fromhex(digits)]
    return ",\n".join(", ".join(cells[at : at + 8]) for at in range(0, len(cells), 8))


@cache
def environment() -> jinja2.Environment:
    """`files.templates.environment` with the filters of C."""
    env = templates.environment()
    env.filters["c_float"] = c_float
    env.filters["c_hex"] = _hex_bytes
    env.filters["c_rows"] = rows
    env.filters["c_type"] = c_type
    env.filters["dims"] = _shape
    env.filters["thousands"] = _thousands
    return env

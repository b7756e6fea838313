"""The Jinja2 environment. A missing value is an error, and lines are printed as they stand."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from toolchain.codegen.arrays import c_float, c_type, rows
from toolchain.files import texts
from toolchain.ir import Tensor
from toolchain.packages import lazy
from toolchain.resources import TEMPLATES

if TYPE_CHECKING:
    import jinja2
else:
    jinja2 = lazy("jinja2")


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
    """Makes the environment. Templates are named by their path below `templates/`."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(texts.FILTERS)
    env.filters["c_float"] = c_float
    env.filters["c_hex"] = _hex_bytes
    env.filters["c_rows"] = rows
    env.filters["c_type"] = c_type
    env.filters["dims"] = _shape
    env.filters["thousands"] = _thousands
    return env

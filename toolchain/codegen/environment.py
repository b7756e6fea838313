"""The Jinja2 environment. A missing value is an error, and lines are printed as they stand."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from toolchain.codegen import names
from toolchain.codegen.arrays import c_float, c_type, rows
from toolchain.ir import Tensor
from toolchain.resources import TEMPLATES


def _shape(tensor: Tensor) -> str:
    return "x".join(str(d) for d in tensor.shape) or "1"


def _thousands(number: int) -> str:
    return f"{number:,}"


@cache
def environment() -> Environment:
    """Makes the environment. Templates are named by their path below `templates/`."""
    env = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters["c_comment"] = names.comment
    env.filters["c_string"] = names.string_literal
    env.filters["c_float"] = c_float
    env.filters["c_rows"] = rows
    env.filters["c_type"] = c_type
    env.filters["dims"] = _shape
    env.filters["thousands"] = _thousands
    return env

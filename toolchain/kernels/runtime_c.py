"""Our own kernels: `runtime_c/source/<family>/`, one function a file.

`runtime_c/include/` holds what generated C includes: the functions that it calls and the structs
that they take. Declarations that the kernels of one family share lie beside it; those of several
families in `source/support/`. Functions that differ in a type alone share a body,
`thimble_<name>_body.h`; the file of each defines the body's macros.
"""

from __future__ import annotations

import re
from functools import cache

from toolchain.kernels.c_sources import CTree
from toolchain.resources import RUNTIME_C

INCLUDE = RUNTIME_C / "include"
"""The folder to pass with `-I` for generated C."""
KERNEL_INCLUDES = (INCLUDE, RUNTIME_C / "source" / "support")
"""The folders to pass with `-I` for our kernels themselves."""


def tree() -> CTree:
    """Our kernels, and the headers that generated C includes."""
    return CTree(RUNTIME_C / "source", INCLUDE)


@cache
def defined(file: str, name: str) -> int:
    """The integer that a file below `runtime_c` defines. Kernels and Python share it, such as
    `defined("include/thimble_requant.h", "THIMBLE_SHIFT_BIAS")`.

    Raises KeyError where the file defines no such integer.
    """
    match = re.search(rf"^#define {name} \(?(-?\d+)\)?$", _text(file), re.MULTILINE)
    if match is None:
        raise KeyError(f"runtime_c/{file} defines no integer {name}")
    return int(match[1])


@cache
def _text(file: str) -> str:
    return (RUNTIME_C / file).read_text(encoding="utf-8")

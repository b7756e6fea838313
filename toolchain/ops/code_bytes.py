"""Bytes of code of C functions, which their modules declare, for estimates before linking.

A module that names a function of more code than most says so by its name:

    CODE_BYTES = {FUNCTION: kit.CodeBytes.LANES}

One of several functions alike says so of each: `dict.fromkeys(FUNCTIONS, kit.CodeBytes.LANES)`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from types import MappingProxyType

import toolchain.ops


class CodeBytes(IntEnum):
    """Bytes of code that a function brings with all that it calls, by what it is: fitted to linked
    firmware (docs/flash.md has the errors).
    """

    PLAIN = 830
    CONVOLUTION = 1700
    LANES = 1800
    JOINED_UNITS = 2400
    CELL = 2400
    DEPTHWISE = 2900
    DEPTHWISE_3X3 = 4700
    MANY_COLUMNS = 9100


@cache
def declared() -> Mapping[str, int]:
    """The declarations of all modules below `ops`, by the names of the functions."""
    path, name = toolchain.ops.__path__, toolchain.ops.__name__
    modules = (importlib.import_module(m.name) for m in pkgutil.walk_packages(path, f"{name}."))
    sizes: dict[str, int] = {}
    for module in modules:
        sizes |= getattr(module, "CODE_BYTES", {})
    return MappingProxyType(sizes)


def code_bytes(function: str) -> int:
    """Estimated bytes of code of a kernel's C function, with all that it calls."""
    return declared().get(function, CodeBytes.PLAIN)

"""What the manuals say of each family's start-up: a file of this folder with a `FAMILY`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from tests.support.families.family import Family


@cache
def families() -> Mapping[str, Family]:
    """By the name of the chips' family, such as `stm32f4`."""
    found: dict[str, Family] = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name != "family":
            made: Family = importlib.import_module(f"{__name__}.{module.name}").FAMILY
            found |= dict.fromkeys(made.names, made)
    return found

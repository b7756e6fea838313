"""Models as packages of other projects' build systems: one file in `targets/` for each."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from toolchain.errors import InputError, did_you_mean
from toolchain.export import targets
from toolchain.export.exporter import Exporter


@cache
def exporters() -> Mapping[str, Exporter]:
    """Every exporter by its name, in alphabetical order."""
    modules = (
        importlib.import_module(f"{targets.__name__}.{target.name}")
        for target in pkgutil.iter_modules(targets.__path__)
    )
    made = (module.EXPORTER for module in modules)
    return MappingProxyType({e.name: e for e in sorted(made, key=lambda e: str(e.name))})


def exporter(name: str) -> Exporter:
    """The exporter of that name. Raises InputError listing them if there is none."""
    try:
        return exporters()[name]
    except KeyError:
        listed = "; ".join(f"{e.name} ({e.summary})" for e in exporters().values())
        listed += f"{did_you_mean(name, exporters())}"
        raise InputError(f"there is no target {name!r} to export for; there are {listed}") from None

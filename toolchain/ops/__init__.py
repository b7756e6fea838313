"""Operator kinds, found by their files: each public module here holds one `SPEC`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from toolchain.ops.spec import OpSpec

_NOT_KINDS = frozenset({"check", "extents", "interpret", "product_extents", "spec", "storage"})


@cache
def specs() -> Mapping[str, OpSpec]:
    """Every operator kind by name, in alphabetical order."""
    found: dict[str, OpSpec] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda m: m.name):
        if module.name.startswith("_") or module.name in _NOT_KINDS:
            continue
        spec = importlib.import_module(f"{__name__}.{module.name}").SPEC
        if spec.kind != module.name:
            raise ImportError(f"ops/{module.name}.py declares kind {spec.kind!r}")
        found[spec.kind] = spec
    return MappingProxyType(found)


def spec_of(kind: str) -> OpSpec:
    """The spec of an operator kind. Raises KeyError for a kind that has no file."""
    return specs()[kind]

"""Operator kinds, found by their files: each public module here holds one `SPEC`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op
from toolchain.ops._fixed_point import ScaleError
from toolchain.ops.spec import Lowering, OpSpec

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


def lowered(op: Op, graph: Graph, core: Core) -> Lowering:
    """How an operator becomes C on a core: `OpSpec.lower`.

    Raises UnsupportedError, naming the operator, where no kernel computes it.
    """
    try:
        return spec_of(op.kind).lower(op, graph, core)
    except ScaleError as error:
        raise UnsupportedError(f"{op.kind} {op.name!r}: {error}") from error

"""Operator kinds, found by their files: a module of a family that holds a `SPEC` is one."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.fixed_point import ScaleError
from toolchain.ops.spec import Lowering, OpSpec


@cache
def specs() -> Mapping[str, OpSpec]:
    """Every operator kind by name, in alphabetical order."""
    found: dict[str, OpSpec] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        family, _, name = module.name.removeprefix(f"{__name__}.").rpartition(".")
        spec = getattr(importlib.import_module(module.name), "SPEC", None) if family else None
        if spec is None:
            continue
        if spec.kind != name:
            raise ImportError(f"ops/{family}/{name}.py declares kind {spec.kind!r}")
        found[spec.kind] = spec
    return MappingProxyType(dict(sorted(found.items())))


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

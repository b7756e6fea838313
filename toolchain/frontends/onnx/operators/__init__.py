"""ONNX operators. Each module here that defines `ROWS` adds operators; kinds add readers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from toolchain.frontends.onnx.operators import unread
from toolchain.frontends.onnx.operators.row import Operator, Trait
from toolchain.frontends.onnx.quantisation import DYNAMIC
from toolchain.frontends.unread import Unread
from toolchain.ops import specs

__all__ = ["Operator", "Trait", "operator", "operators", "read_away", "reasons"]


@cache
def operators() -> Mapping[str, Operator]:
    """Every operator that is known, by name; in the order of the modules, then of the kinds."""
    rows: dict[str, Operator] = {}
    for module in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        for row in getattr(importlib.import_module(f"{__name__}.{module}"), "ROWS", ()):
            if row.name in rows:
                raise ImportError(f"two rows are of the ONNX operator {row.name}")
            rows[row.name] = row
    for spec in specs().values():
        for name in spec.onnx.operators if spec.onnx else ():
            assert spec.onnx is not None
            rows[name] = rows.get(name, Operator(name)).read_by(spec.onnx)
    return MappingProxyType(rows)


def operator(name: str) -> Operator:
    """The operator of a name, with no form if it is unknown."""
    return operators().get(name) or Operator(name)


def read_away() -> tuple[str, ...]:
    """Operators that reading removes: they become others, the layout of tensors, or nothing."""
    return tuple(
        sorted(
            name
            for name, row in operators().items()
            if not row.computes
            if row.arranges or row.integers or row.composed or row.older or name == DYNAMIC
        )
    )


def reasons() -> dict[str, Unread]:
    """Operators that ONNX defines and nothing reads, and why."""
    return {row.name: row.unread for row in unread.ROWS if row.unread is not None}

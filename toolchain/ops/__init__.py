"""Operator kinds. Each module in a family's folder that defines a `SPEC` is a kind; one that makes
several defines `SPECS`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op
from toolchain.ops.arithmetic.fixed_point import ScaleError
from toolchain.ops.forms import Choice, Form, OpSpec, Select
from toolchain.ops.kernel import Kernel
from toolchain.ops.operator import Operator, operator_of
from toolchain.ops.preference import NoKernelError, Preference


@cache
def specs() -> Mapping[str, OpSpec]:
    """Every operator kind by name, in alphabetical order."""
    kinds: dict[str, OpSpec] = {}
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        family, _, name = module.name.removeprefix(f"{__name__}.").rpartition(".")
        if not family:
            continue
        loaded = importlib.import_module(module.name)
        single = getattr(loaded, "SPEC", None)
        for spec in (*getattr(loaded, "SPECS", ()), *([] if single is None else [single])):
            spec = OpSpec((spec,)) if isinstance(spec, Form) else spec
            if single is not None and spec.kind != name:
                raise ImportError(f"ops/{family}/{name}.py declares kind {spec.kind!r}")
            if spec.kind in kinds:
                raise ImportError(f"two modules declare the kind {spec.kind!r}")
            kinds[spec.kind] = spec
    return MappingProxyType(dict(sorted(kinds.items())))


@cache
def forms() -> Mapping[str, Form[Any]]:
    """Every form by name: `conv2d` (int8, the first), `conv2d.int16`, `conv2d.hybrid`."""
    named: dict[str, Form[Any]] = {}
    for kind, spec in specs().items():
        named[kind] = spec.forms[0]
        for form in spec.forms[1:]:
            assert form.dtype is not None
            named[f"{kind}.{form.name or form.dtype.value}"] = form
    return MappingProxyType(named)


def spec_of(kind: str) -> OpSpec:
    """The spec of an operator kind. Raises KeyError for an unknown kind."""
    return specs()[kind]


def kernel_of(op: Op, graph: Graph, core: Core, preference: Preference = Preference.AUTO) -> Kernel:
    """Choose the kernel that computes an operator on a core.

    `Kernel.instead` says why it is not one that `preference` asks for. Raises UnsupportedError,
    which names the operator, if there is none.
    """
    try:
        form = spec_of(op.kind).form(op, graph)
    except ValueError as error:
        raise UnsupportedError(
            f"{op.kind} {op.name!r}: {error}; quantise the model", operator=op.name
        ) from error
    try:
        return _preferred(form.select, operator_of(op, graph), core, preference)
    except ScaleError as error:
        raise UnsupportedError(f"{op.kind} {op.name!r}: {error}", operator=op.name) from error


def _preferred(select: Select, op: Operator[Any], core: Core, preference: Preference) -> Kernel:
    if preference is Preference.AUTO:
        return select(op, core)
    own = (select.own or select.quicker) if isinstance(select, Choice) else select
    why = "there is no other"
    if preference is Preference.CMSIS_NN:
        why = "no function of CMSIS-NN's is called for it"
        if isinstance(select, Choice):
            try:
                return select.cmsis_nn(op, core)
            except (NoKernelError, ScaleError) as error:
                why = str(error)
    kernel = own(op, core)
    wanted = kernel.of_cmsis_nn == (preference is Preference.CMSIS_NN)
    return kernel if wanted or not kernel.calls else replace(kernel, instead=why)

"""Lowering: choose one kernel for each operator of a graph on one core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph
from toolchain.ops import kernel_of
from toolchain.ops.kernel import Kernel
from toolchain.ops.preference import Preference

Forms = Mapping[str, str]
"""The title of the form to take, among those that `Kernel.every` lists, by the operator's name.
Blocks of one operator have its name."""
NO_FORMS: Forms = MappingProxyType({})


@dataclass(frozen=True)
class Lowered:
    """A graph and the kernels that compute it on one core.

    `kernels` is parallel to `graph.ops`. Planner, memory, cost and codegen read it. Constants are
    packed when they are first read, and only once. `preference`: whose kernels were to be taken;
    `forms`: which forms of them, wherever they apply.
    """

    graph: Graph
    core: Core
    kernels: tuple[Kernel, ...]
    preference: Preference = Preference.AUTO
    forms: Forms = field(default_factory=lambda: NO_FORMS)


def lower(
    graph: Graph,
    core: Core,
    preference: Preference = Preference.AUTO,
    forms: Forms = NO_FORMS,
) -> Lowered:
    """Choose the kernel of every operator; where `forms` names one that applies, that.

    Raises UnsupportedError, with a line for each operator that has no kernel on this core.
    """
    kernels, refused = [], []
    for op in graph.ops:
        try:
            kernel = kernel_of(op, graph, core, preference)
            kernels.append(_form_of(kernel, forms.get(op.part_of or op.name, "")))
        except UnsupportedError as error:
            refused.append((op, str(error)))
        except (ArithmeticError, ValueError) as error:  # absurd scales, from a hostile file
            refused.append((op, f"{op.kind} {op.name!r}: {error}"))
    if refused:
        said = "\n".join(why for _, why in refused)
        raise UnsupportedError(said, operator=refused[0][0].name)
    return Lowered(graph, core, tuple(kernels), preference, forms)


def _form_of(kernel: Kernel, title: str) -> Kernel:
    """That form; else the one with the least scratch that calls the same functions; else the kernel
    itself, as for blocks to which the form does not apply.
    """
    if not title:
        return kernel
    forms = kernel.forms()
    function = title.partition(" ")[0]
    alike = (form for form in forms if form.name == function)
    return next((form for form in forms if form.title == title), next(alike, kernel))

"""Lowering: choose one kernel for each operator of a graph on one core."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph, Op
from toolchain.ir.identity import OperatorIdentity, operator_identity
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

    def with_kernel(self, number: int, kernel: Kernel) -> Lowered:
        """This graph with another kernel for operator `number`."""
        kernels = (*self.kernels[:number], kernel, *self.kernels[number + 1 :])
        return replace(self, kernels=kernels)


class Kernels:
    """The kernels of operators on one core, each chosen once for all operators that are the same
    (`ir.identity`): where many graphs are lowered that consist of blocks of one network.
    """

    def __init__(self, core: Core, preference: Preference = Preference.AUTO) -> None:
        self.core = core
        self.preference = preference
        self._numbers: dict[OperatorIdentity, int] = {}
        self._known: dict[int, Kernel] = {}
        self._forms: dict[tuple[int, str], Kernel] = {}
        self._graphs: dict[int, tuple[Graph, list[int]]] = {}
        """The numbers of the operators of each graph, by its `id`, which it keeps."""

    def number(self, index: int, graph: Graph) -> int:
        """One number for all operators that are the same."""
        if id(graph) not in self._graphs:
            numbers, found = self._numbers, []
            for op in graph.ops:
                found.append(numbers.setdefault(operator_identity(op, graph), len(numbers)))
            self._graphs[id(graph)] = graph, found
        return self._graphs[id(graph)][1][index]

    def _chosen(self, op: Op, graph: Graph) -> Kernel:
        return kernel_of(op, graph, self.core, self.preference)

    def of(self, index: int, graph: Graph, title: str = "") -> Kernel:
        """The kernel, or the form so called. Raises UnsupportedError, which names the operator, if
        there is none.
        """
        number = self.number(index, graph)
        if number not in self._known:
            self._known[number] = self._chosen(graph.ops[index], graph)
        if not title:
            return self._known[number]
        if (number, title) not in self._forms:
            self._forms[number, title] = _form_of(self._known[number], title)
        return self._forms[number, title]


def lower(
    graph: Graph,
    core: Core,
    preference: Preference = Preference.AUTO,
    forms: Forms = NO_FORMS,
    known: Kernels | None = None,
) -> Lowered:
    """Choose the kernel of every operator; where `forms` names one that applies, that. `known`: of
    this core and preference.

    Raises UnsupportedError, with a line for each operator that has no kernel on this core.
    """
    kernels, refused = [], []
    for index, op in enumerate(graph.ops):
        title = forms.get(op.part_of or op.name, "")
        try:
            if known:
                kernels.append(known.of(index, graph, title))
            else:
                kernels.append(_form_of(kernel_of(op, graph, core, preference), title))
        except UnsupportedError as error:
            refused.append((op, str(error)))
        except (ArithmeticError, ValueError) as error:  # absurd scales, from a hostile file
            refused.append((op, f"{op.kind} {op.name!r}: {error}"))
    if refused:
        said = "\n".join(why for _, why in refused)
        raise UnsupportedError(said, operator=refused[0][0].name)
    return Lowered(graph, core, tuple(kernels), preference, forms)


def _form_of(kernel: Kernel, title: str) -> Kernel:
    """The form of `kernel` with this title; else the one with the least scratch that calls the
    same functions; else the kernel itself, as for blocks to which the form does not apply.
    """
    if not title:
        return kernel
    forms = kernel.forms()
    function = title.partition(" ")[0]
    alike = (form for form in forms if form.name == function)
    return next((form for form in forms if form.title == title), next(alike, kernel))

"""Lowering: choose one kernel for each operator of a graph on one core."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph
from toolchain.ops import kernel_of
from toolchain.ops.kernel import Kernel
from toolchain.ops.preference import Preference


@dataclass(frozen=True)
class Lowered:
    """A graph and the kernels that compute it on one core.

    `kernels` is parallel to `graph.ops`. Planner, memory, cost and codegen read it. Constants are
    packed when they are first read, and only once. `preference`: whose kernels were to be taken.
    """

    graph: Graph
    core: Core
    kernels: tuple[Kernel, ...]
    preference: Preference = Preference.AUTO


def lower(graph: Graph, core: Core, preference: Preference = Preference.AUTO) -> Lowered:
    """Choose the kernel of every operator.

    Raises UnsupportedError, with a line for each operator that has no kernel on this core.
    """
    kernels, refused = [], []
    for op in graph.ops:
        try:
            kernels.append(kernel_of(op, graph, core, preference))
        except UnsupportedError as error:
            refused.append(str(error))
        except (ArithmeticError, ValueError) as error:  # absurd scales, from a hostile file
            refused.append(f"{op.kind} {op.name!r}: {error}")
    if refused:
        raise UnsupportedError("\n".join(refused))
    return Lowered(graph, core, tuple(kernels), preference)

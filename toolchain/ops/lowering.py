"""Graph and core to one kernel for each operator: the stage that chooses kernels."""

from __future__ import annotations

from dataclasses import dataclass

from toolchain.boards import Core
from toolchain.errors import UnsupportedError
from toolchain.ir import Graph
from toolchain.ops import kernel_of
from toolchain.ops.kernel import Kernel


@dataclass(frozen=True)
class Lowered:
    """A graph and the kernels that compute it on one core.

    `kernels` is parallel to `graph.ops`. Planner, memory, cost and codegen read them. Constants are
    packed once, when they are first read.
    """

    graph: Graph
    core: Core
    kernels: tuple[Kernel, ...]


def lower(graph: Graph, core: Core) -> Lowered:
    """Choose the kernel of every operator.

    Raises UnsupportedError, which names every operator for which this core has no kernel.
    """
    kernels, refused = [], []
    for op in graph.ops:
        try:
            kernels.append(kernel_of(op, graph, core))
        except UnsupportedError as error:
            refused.append(str(error))
        except (ArithmeticError, ValueError) as error:  # absurd scales, from a hostile file
            refused.append(f"{op.kind} {op.name!r}: {error}")
    if refused:
        raise UnsupportedError("\n".join(refused))
    return Lowered(graph, core, tuple(kernels))

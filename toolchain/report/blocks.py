"""Which operators belong together: cells between cuts of the graph, runs of one resolution.

A *cut* is a place in the order where a single tensor carries everything that follows. The operators
between two cuts are a block (a residual cell, an inception cell). Adjacent blocks of one operator
each are joined if their outputs have the same height and width.
"""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.ir import Graph


def blocks(graph: Graph, order: Sequence[int]) -> dict[int, str]:
    """Operator (its index in the graph) to the name of its block, such as `2-4 16x16x32`.

    The numbers are the first and last step of the block in `order`; the shape is that of its
    result.
    """
    cells = _joined(graph, _cells(graph, order))
    named: dict[int, str] = {}
    step = 0
    for cell in cells:
        last = step + len(cell) - 1
        steps = f"{step}" if last == step else f"{step}-{last}"
        shape = graph.tensors[graph.ops[cell[-1]].outputs[0]].shape
        named |= dict.fromkeys(cell, f"{steps} {'x'.join(str(d) for d in shape[1:])}".strip())
        step = last + 1
    return named


def _cells(graph: Graph, order: Sequence[int]) -> list[list[int]]:
    """Runs of the order that end where one tensor, no more, is still to be read."""
    readers = {
        name: sum(1 for _ in users)
        for name, users in graph.consumers.items()
        if not graph.tensors[name].is_constant
    }
    waiting = {name for name in graph.inputs if readers.get(name)}
    cells: list[list[int]] = [[]]
    for index in order:
        op = graph.ops[index]
        cells[-1].append(index)
        for name in dict.fromkeys(op.present_inputs()):
            if name in readers:
                readers[name] -= 1
                if not readers[name]:
                    waiting.discard(name)
        waiting |= {name for name in op.outputs if readers.get(name)}
        if len(waiting) <= 1:
            cells.append([])
    return [cell for cell in cells if cell]


def _joined(graph: Graph, cells: list[list[int]]) -> list[list[int]]:
    def place(cell: list[int]) -> tuple[int, ...] | None:
        shape = graph.tensors[graph.ops[cell[-1]].outputs[0]].shape
        return shape[1:-1] if len(shape) == 4 else None

    joined: list[list[int]] = []
    single = False
    for cell in cells:
        alone = len(cell) == 1
        if joined and single and alone and place(joined[-1]) == place(cell):
            joined[-1] = joined[-1] + cell
        else:
            joined.append(cell)
            single = alone
    return joined


def moved_bytes(graph: Graph, index: int) -> int:
    """Bytes that an operator reads and writes, each tensor once: activations, weights, results. An
    input that arrives by rows counts with the rows that the operator takes.
    """
    op = graph.ops[index]
    names = dict.fromkeys((*op.present_inputs(), *op.outputs))
    if graph.pushed is not None and graph.pushed.input in names:
        return 2 * graph.output(op).size_bytes
    return sum(graph.tensors[name].size_bytes for name in names)


def constant_bytes(graph: Graph, index: int) -> int:
    """Bytes of the constants that an operator reads, as the model file has them."""
    names = dict.fromkeys(graph.ops[index].present_inputs())
    return sum(graph.tensors[name].size_bytes for name in names if graph.tensors[name].is_constant)

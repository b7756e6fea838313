"""Baselines to compare with: Google's compiler, and cuts of one fixed order."""

from __future__ import annotations

from collections.abc import Sequence

from toolchain.edgetpu.graph import PipelineGraph


def depth_first_order(graph: PipelineGraph) -> tuple[int, ...]:
    """A topological order that follows each branch to its end (Kahn's algorithm on a stack)."""
    missing = [len(found) for found in graph.predecessors]
    users: list[list[int]] = [[] for _ in graph.ops]
    for index, found in enumerate(graph.predecessors):
        for before in found:
            users[before].append(index)
    ready = [index for index, count in enumerate(missing) if count == 0]
    order = []
    while ready:
        index = ready.pop()
        order.append(index)
        for user in users[index]:
            missing[user] -= 1
            if missing[user] == 0:
                ready.append(user)
    return tuple(order)


def greedy(graph: PipelineGraph, sizes: Sequence[int], stages: int) -> tuple[int, ...]:
    """Stage of each operator as the Edge TPU compiler cuts (`--num_segments`).

    In depth-first topological order, a stage is filled until the next operator would pass total /
    stages + 1 bytes; the last stage takes the rest. `sizes`: parameter bytes of each operator.
    """
    limit = sum(sizes) // stages + 1
    result = [0] * len(sizes)
    stage, filled = 0, 0
    for index in depth_first_order(graph):
        if filled + sizes[index] > limit and stage < stages - 1:
            stage, filled = stage + 1, 0
        filled += sizes[index]
        result[index] = stage
    return tuple(result)

"""Which bytes of its buffers each operator touches, and so what is live of a buffer at a step."""

from __future__ import annotations

from toolchain.ir import Access, Graph, MemoryProblem
from toolchain.ops import spec_of
from toolchain.ops.moves import covers
from toolchain.ops.spec import Alias, StridedView


def touched_bytes(graph: Graph, problem: MemoryProblem) -> tuple[tuple[Access, ...], ...]:
    """Bytes that each operator reads, and all that it writes.

    Bytes between the lines of a strided view count too. Empty where views leave the operator
    nothing to do.
    """
    at = {
        member.tensor: (index, member.offset_bytes)
        for index, buffer in enumerate(problem.buffers)
        for member in buffer.members
    }
    pitches = {m.tensor: m.pitch_bytes for b in problem.buffers for m in b.members}

    def in_place(alias: Alias | StridedView) -> bool:
        base = at.get(alias.base)
        pitch = alias.pitch_bytes if isinstance(alias, StridedView) else 0
        lies = base is not None and at.get(alias.view) == (base[0], base[1] + alias.offset_bytes)
        return lies and pitches[alias.view] == pitch

    def extent(name: str) -> int:
        tensor, pitch = graph.tensors[name], pitches[name]
        lines = tensor.shape[1] if pitch else 1
        return (lines - 1) * pitch + tensor.size_bytes // lines

    by_operator: list[tuple[Access, ...]] = []
    for op in graph.ops:
        aliases = spec_of(op.kind).aliases(op, graph)
        if aliases and covers(op, graph, aliases) and all(map(in_place, aliases)):
            by_operator.append(())
            continue
        strided = spec_of(op.kind).strided_views(op, graph)
        if strided and all(map(in_place, strided)):
            by_operator.append(())
            continue
        runs = [(name, 0, extent(name)) for name in op.outputs if name in at]
        for name, (begin, end) in zip(op.inputs, spec_of(op.kind).reads(op, graph), strict=True):
            if name in at:
                apart = bool(pitches[name])
                runs.append((name, 0, extent(name)) if apart else (name, begin, end))
        touched = ((*at[name], begin, end) for name, begin, end in runs)
        accesses = (Access(buffer, at + begin, at + end) for buffer, at, begin, end in touched)
        by_operator.append(tuple(dict.fromkeys(accesses)))
    return tuple(by_operator)

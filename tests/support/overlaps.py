"""Plans that lay each operator's input as near behind its output as the kind claims it may."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from tests.support.host import plan_of
from toolchain.boards import Core
from toolchain.ir import Graph, Op
from toolchain.ir.merged import merged
from toolchain.memory.plan import Plan
from toolchain.ops import forms, kernel_of, spec_of
from toolchain.ops.kernel import SafeOverlap
from toolchain.ops.lowering import NO_FORMS, Forms

ALIGNMENT = 8


def _up(size: int, alignment: int = ALIGNMENT) -> int:
    return -(-size // alignment) * alignment


def allowed_overlaps(op: Op, graph: Graph, core: Core) -> tuple[SafeOverlap, ...]:
    """Those with an input that is no constant and no other input as well."""
    spec = spec_of(op.kind)
    if spec.aliases(op, graph):
        return ()
    return tuple(
        overlap
        for overlap in kernel_of(op, graph, core).overlaps
        if op.inputs.count(op.inputs[overlap.input]) == 1
        and not graph.input(op, overlap.input).is_constant
    )


def overlapping_samples(
    kinds: Sequence[str], core: Core, samples: int
) -> tuple[Graph, list[SafeOverlap]]:
    """Samples of kinds side by side, each once for each overlap that it allows; and those."""
    graphs: list[Graph] = []
    overlaps: list[SafeOverlap] = []
    for kind in kinds:
        rng = np.random.default_rng(zlib.crc32(kind.encode()))
        for _ in range(samples):
            graph = forms()[kind].sample(rng)
            allowed = allowed_overlaps(graph.ops[0], graph, core)
            graphs += [graph] * len(allowed)
            overlaps += allowed
    return merged(graphs), overlaps


def tight_plan(
    graph: Graph, overlaps: Sequence[SafeOverlap], core: Core, chosen: Forms = NO_FORMS
) -> Plan:
    """Each operator in a part of the arena of its own, its overlap made use of."""
    plan = plan_of(graph, core, forms=chosen)
    offsets: dict[str, int] = {}
    scratch: dict[str, int] = {}
    free = 0
    for op, planned, overlap in zip(graph.ops, plan.operators, overlaps, strict=True):
        source, target = graph.input(op, overlap.input), graph.output(op, overlap.output)
        offsets[target.name] = free
        offsets[source.name] = free + _up(max(overlap.lead_bytes, 0), source.dtype.size_bytes)
        free = _up(max(offsets[t.name] + t.size_bytes for t in (source, target)))
        for name in (*op.present_inputs(), *op.outputs):
            tensor = graph.tensors[name]
            if name not in offsets and not tensor.is_constant:
                offsets[name] = free
                free += _up(tensor.size_bytes)
        if planned.scratch_bytes:
            scratch[op.name] = free
            free += _up(planned.scratch_bytes)
    arena = replace(
        plan.arena,
        size_bytes=free,
        alignment_bytes=ALIGNMENT,
        offsets=MappingProxyType(offsets),
        scratch_offsets=MappingProxyType(scratch),
    )
    return replace(plan, arena=arena)

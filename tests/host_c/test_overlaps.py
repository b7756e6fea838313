"""Every overlap that a kind allows, laid out as tightly as it claims: the kernel must bear it."""

from __future__ import annotations

import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from tests.support.host import plan_of, random_inputs, reference_outputs
from toolchain import cmsis_nn
from toolchain.boards import HOST
from toolchain.codegen import generate
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.ir import Graph, Plan
from toolchain.ops import spec_of, specs
from toolchain.ops.spec import SafeOverlap

SAMPLES = 12
ALIGNMENT = 8


def _up(size: int, alignment: int = ALIGNMENT) -> int:
    return -(-size // alignment) * alignment


def _overlaps(graph: Graph) -> tuple[SafeOverlap, ...]:
    """The overlaps with an input that is no constant and no other input as well."""
    op = graph.ops[0]
    if spec_of(op.kind).aliases(op, graph):
        return ()
    found = spec_of(op.kind).overlaps(op, graph, HOST)
    return tuple(
        o
        for o in found
        if op.inputs.count(op.inputs[o.input]) == 1 and not graph.input(op, o.input).is_constant
    )


def tight_plan(graph: Graph, overlap: SafeOverlap) -> Plan:
    """The output at 0, the input as near behind as allowed, everything else out of the way."""
    plan, op = plan_of(graph), graph.ops[0]
    source, target = graph.input(op, overlap.input), graph.output(op, overlap.output)
    offsets = {
        target.name: 0,
        source.name: _up(max(overlap.lead_bytes, 0), source.dtype.size_bytes),
    }
    free = _up(max(offsets[t.name] + t.size_bytes for t in (source, target)))
    for tensor in graph.activations():
        if tensor.name not in offsets:
            offsets[tensor.name] = free
            free += _up(tensor.size_bytes)
    scratch = dict.fromkeys(plan.arena.scratch_offsets, free)
    free += _up(max((o.scratch_bytes for o in plan.operators), default=0))
    arena = replace(
        plan.arena,
        size_bytes=free,
        alignment_bytes=ALIGNMENT,
        offsets=MappingProxyType(offsets),
        scratch_offsets=MappingProxyType(scratch),
    )
    return replace(plan, arena=arena)


KINDS = sorted(specs())


@pytest.mark.parametrize("kind", KINDS)
def test_kernel_bears_the_overlap(kind: str) -> None:
    rng = np.random.default_rng(zlib.crc32(kind.encode()))
    samples = [specs()[kind].sample(rng) for _ in range(SAMPLES)]
    cases = [(graph, overlap) for graph in samples for overlap in _overlaps(graph)]
    if not cases:
        pytest.skip("allows no overlap")
    models = [
        HostModel(
            generate(tight_plan(graph, overlap), HOST, cmsis_nn.find(), name=f"m{index}"), graph
        )
        for index, (graph, overlap) in enumerate(cases)
    ]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=True)
        with HostProgram(program, models) as running:
            for index, (graph, overlap) in enumerate(cases):
                inputs = random_inputs(graph, rng)
                (want,) = reference_outputs(graph, inputs)
                (have,) = running.run(inputs, index)
                np.testing.assert_array_equal(have, want, err_msg=f"{overlap} {graph.ops}")

"""Graphs to outputs by generated C on the host: what most tests of operators run on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from toolchain import arena, schedule
from toolchain.boards import HOST, Core, board
from toolchain.codegen import Costs, constant_bytes, generate
from toolchain.codegen.bounds import call_extents
from toolchain.cost.predicted import predicted_model
from toolchain.device.host import HostModel, HostProgram, build
from toolchain.ir import ArenaProblem, Graph, Placement, Sources, Tensor
from toolchain.ir.arena import arena_plan, arena_problem, check_placement
from toolchain.ir.memory import check_order, footprint
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan, planned_ops
from toolchain.memory.problem import memory_problem
from toolchain.memory.views import View
from toolchain.ops import spec_of
from toolchain.ops.lowering import NO_FORMS, Forms, Kernels, lower
from toolchain.ops.moves import moves
from toolchain.ops.preference import Preference
from toolchain.ops.spec import Array
from toolchain.planning import room
from toolchain.report.latency import predict_latency

GAP_BYTES = 32


def plan_of(
    graph: Graph,
    core: Core = HOST,
    *,
    spread: bool = False,
    copying: frozenset[View] = frozenset(),
    allocator: str = "greedy-size",
    progressive: bool = False,
    preference: Preference = Preference.AUTO,
    forms: Forms = NO_FORMS,
) -> Plan:
    """Reverse post-order and an allocator, both checked; or, `spread`, `spread_out`."""
    lowered = lower(graph, core, preference, forms)
    problem = memory_problem(lowered, copying, progressive=progressive)
    order = schedule.scheduler("rpo").schedule(problem)
    check_order(problem, order.order)
    blocks = arena_problem(problem, order.order)
    placement = spread_out(blocks) if spread else arena.allocator(allocator).place(blocks)
    check_placement(blocks, placement)
    placed = arena_plan(problem, order.order, placement, blocks)
    return Plan(
        lowered=lowered,
        board="host",
        schedule=order,
        arena=placed,
        operators=planned_ops(lowered, placed),
        step_bytes=footprint(problem, order.order),
    )


def with_room(plan: Plan, more_bytes: int) -> Plan:
    """The plan in an arena of so many bytes more, with the kernels that take them for scratch."""
    arena = replace(plan.arena, size_bytes=plan.arena.size_bytes + more_bytes)
    return spend_room(replace(plan, arena=arena))


def spend_room(plan: Plan) -> Plan:
    """The plan with quicker kernels whose scratch fits beside what is live while they run."""
    costs = predicted_model(board(plan.board)).within(plan.graph)
    known = Kernels(plan.lowered.core, plan.lowered.preference)
    made = room.Room(plan, room.Forms(costs, known)).plan(plan.arena.size_bytes, 0)
    return replace(made, weight_bytes=constant_bytes(made))


def spread_out(blocks: ArenaProblem) -> Placement:
    """No two blocks share a byte, and a gap follows each."""
    offsets, end = [], 0
    for block in blocks.blocks:
        offsets.append(end)
        end = -(-(end + block.size_bytes) // GAP_BYTES) * GAP_BYTES + GAP_BYTES
    return Placement("spread", tuple(offsets), end, 0)


def reaches_of(plan: Plan, sources: Sources) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each call in turn (offset, size) of the arena's bytes that it says it touches.

    They are the extents that `codegen.bounds` compares with the tensors, so that a sanitized
    program reports an operator whose kernel touches more than is claimed. Of lines that lie apart
    also the gaps: the sanitizer tells no bytes apart that share a word of eight.
    """
    return tuple(tuple(_reaches(plan, number)) for number in sources.calls)


def _reaches(plan: Plan, number: int) -> Iterator[tuple[int, int]]:
    graph, arena, op = plan.graph, plan.arena, plan.graph.ops[number]
    if op.name in arena.fetch_offsets:
        yield arena.fetch_offsets[op.name], arena.fetch_bytes[op.name]
    wanted = moves(op, graph, arena)
    if wanted is not None:
        for move in wanted:
            ends = ((move.source, move.source_offset), (move.target, move.target_offset))
            for name, offset in ends:
                if name in arena.offsets:
                    yield arena.offsets[name] + offset, move.size_bytes
        return
    found = call_extents(op, graph, plan.lowered.kernels[number], arena.pitches)
    named = [(op.inputs[index], extent) for index, extent in found.inputs.items()]
    named += [(op.outputs[index], extent) for index, extent in found.outputs.items()]
    for name, extent in named:
        if name in arena.offsets:
            yield arena.offsets[name] + extent.begin, extent.last - extent.begin
    if found.scratch:
        yield arena.scratch_offsets[op.name], found.scratch


def model_of(plan: Plan, name: str = "", *, external: bool = False) -> HostModel:
    """Generated C; a sanitized program reports an operator that touches bytes of others.

    `external`: its constants lie in a blob, and are fetched from there if the plan has places.

    A plan for another core keeps the kernels chosen for it; this machine runs their portable form.
    """
    plan = replace(plan, lowered=replace(plan.lowered, core=HOST))
    latency = predict_latency(plan)
    costs = Costs(latency.counts, latency.unit, latency.basis.text)
    sources = generate(plan, HOST, cmsis_nn.find(), name=name, costs=costs, external=external)
    return HostModel(sources, plan.graph, reaches_of(plan, sources))


def host_model(
    graph: Graph,
    name: str = "",
    *,
    spread: bool = False,
    progressive: bool = False,
    preference: Preference = Preference.AUTO,
) -> HostModel:
    """`model_of` a plan by `plan_of`."""
    plan = plan_of(graph, spread=spread, progressive=progressive, preference=preference)
    return model_of(plan, name)


def random_tensor(tensor: Tensor, rng: np.random.Generator) -> Array:
    """Any value of the tensor's type; floats from a normal distribution."""
    if tensor.dtype.value == "float32":
        return rng.normal(size=tensor.shape).astype(np.float32)
    if tensor.dtype.value == "bool":
        return rng.random(tensor.shape) < 0.5
    info = np.iinfo(tensor.dtype.value)
    return rng.integers(info.min, info.max, tensor.shape, tensor.dtype.numpy, endpoint=True)


def random_inputs(graph: Graph, rng: np.random.Generator) -> tuple[Array, ...]:
    return tuple(random_tensor(graph.tensors[name], rng) for name in graph.inputs)


def reference_outputs(graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The graph's outputs by the operators' NumPy references."""
    values = dict(zip(graph.inputs, inputs, strict=True))
    values |= {state.input: state.initial for state in graph.states}
    for tensor in graph.tensors.values():
        if tensor.constant is not None:
            values[tensor.name] = tensor.constant
    for op in graph.ops:
        given = [values[name] if name else np.zeros(0) for name in op.inputs]
        results = spec_of(op.kind).reference(op, graph, given)
        values.update(zip(op.outputs, results, strict=True))
    return tuple(values[name] for name in graph.outputs)


def run_graph_on_host(
    graph: Graph, inputs: Sequence[Array], *, sanitize: bool = False
) -> tuple[Array, ...]:
    """Generate, compile and run one graph once."""
    return run_graphs_on_host([(graph, inputs)], sanitize=sanitize)[0]


def run_graphs_on_host(
    cases: Sequence[tuple[Graph, Sequence[Array]]], *, sanitize: bool = False
) -> list[tuple[Array, ...]]:
    """One program with a model for each case, linked side by side; the outputs of each."""
    models = [host_model(graph, f"m{index}") for index, (graph, _) in enumerate(cases)]
    with tempfile.TemporaryDirectory() as folder:
        program = build(models, cmsis_nn.find(), Path(folder), sanitize=sanitize)
        with HostProgram(program, models) as running:
            return [running.run(inputs, index) for index, (_, inputs) in enumerate(cases)]

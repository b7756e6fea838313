"""An independent check of a plan, without any code of the solvers or of `figures.py`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from toolchain.edgetpu.figures import StageOf, Totals
from toolchain.edgetpu.graph import PipelineGraph
from toolchain.errors import ResultError


def check_plan(
    graphs: Sequence[PipelineGraph],
    assigned: Sequence[StageOf],
    totals: Totals,
    *,
    stages: int,
    balance: str,
    cache_bytes: int,
    runnable: bool = True,
    beside: Collection[int] = (),
) -> None:
    """Raise ResultError if a plan breaks a rule or its totals are wrong.

    `assigned`: the stage of each operator, by graph. `balance`: which parameter sizes were
    balanced. `cache_bytes`: the cache of a stick. `runnable=False` skips the rules of the runner,
    which a baseline may break. `beside`: the stages that are on no stick, and spill nothing.
    """
    for graph, stage_of in zip(graphs, assigned, strict=True):
        for line in broken_rules(graph, stage_of, stages):
            if runnable or "before operator" in line:
                raise ResultError(f"the plan is wrong, please report this: {line}")
    communication, held = 0, [0] * stages
    for graph, stage_of in zip(graphs, assigned, strict=True):
        for tensor, writer in graph.producer.items():
            for stage in range(stages):
                readers = [u for u in graph.consumers.get(tensor, ()) if stage_of[u] == stage]
                if readers and stage_of[writer] != stage:
                    communication += graph.tensors[tensor].size_bytes
        if balance == "compiled":
            for op, stage in zip(graph.ops, stage_of, strict=True):
                held[stage] += op.compiled_bytes
            continue
        at: dict[int, set[int]] = {}
        for op, stage in zip(graph.ops, stage_of, strict=True):
            for constant in op.constants:
                at.setdefault(constant, set()).add(stage)
        for constant, found in at.items():
            for stage in found:
                held[stage] += graph.constant_bytes[constant]
    spill = sum(max(0, size - cache_bytes) for k, size in enumerate(held) if k not in beside)
    for what, ours, told in (
        ("largest stage", max(held), totals.max_stage_bytes),
        ("spill", spill, totals.spill_bytes),
        ("communication", communication, totals.communication_bytes),
    ):
        if ours != told:
            raise ResultError(
                f"the plan is wrong, please report this: {what} is {ours} bytes, not {told}"
            )


def broken_rules(graph: PipelineGraph, stage_of: tuple[int, ...], stages: int) -> list[str]:
    """Every rule of dependency and of the runner that an assignment breaks, as text."""
    broken = []
    for index, found in enumerate(graph.predecessors):
        if not 0 <= stage_of[index] < stages:
            broken.append(f"operator {index} is in stage {stage_of[index]} of {stages}")
        broken += [
            f"operator {index} runs in stage {stage_of[index]}, before operator {before}"
            for before in found
            if stage_of[before] > stage_of[index]
        ]
    for tensor in graph.inputs:
        broken += [
            f"operator {user} reads the model's input {graph.tensors[tensor].name!r} in stage "
            f"{stage_of[user]}, not in the first"
            for user in graph.consumers.get(tensor, ())
            if stage_of[user]
        ]
    for tensor in graph.outputs:
        if stage_of[graph.producer[tensor]] != stages - 1:
            broken.append(
                f"the model's output {graph.tensors[tensor].name!r} is written in stage "
                f"{stage_of[graph.producer[tensor]]}, not in the last"
            )
    for stage in range(stages):
        operators = [index for index, at in enumerate(stage_of) if at == stage]
        written = {t for index in operators for t in graph.ops[index].outputs}
        read = {t for index in operators for t in graph.ops[index].inputs} - written
        passed = {
            t for t in written if any(stage_of[u] > stage for u in graph.consumers.get(t, ()))
        }
        if not operators:
            broken.append(f"stage {stage} has no operators")
        elif not read:
            broken.append(f"stage {stage} receives nothing")
        elif stage < stages - 1 and not passed:
            broken.append(f"stage {stage} passes nothing on")
    owners: dict[int, int] = {}
    for index, op in enumerate(graph.ops):
        for state in op.states:
            if stage_of[owners.setdefault(state, index)] != stage_of[index]:
                broken.append(f"operators {owners[state]} and {index} share state")
    return broken

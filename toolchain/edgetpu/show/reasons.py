"""Devices and operators of the stages of a pipeline, the parts of their time, and the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from toolchain.edgetpu.model.figures import StageFigures
from toolchain.edgetpu.model.graph import PipelineGraph
from toolchain.edgetpu.model.supported import ON_TPU
from toolchain.edgetpu.plan.planner import PipelinePlan

Parts = tuple[tuple[str, float], ...]
"""Names and milliseconds."""
_SMALL = 0.05
"""Share of the period by which a stage may be quicker and still be called as slow."""


def device(plan: PipelinePlan, number: int) -> str:
    """The device of a stage."""
    beside = {plan.host: "the host", plan.mcu: plan.board}
    return beside.get(number) or f"Edge TPU {number - sum(one < number for one in plan.beside)}"


def kinds(graph: PipelineGraph, stage: StageFigures) -> tuple[tuple[str, int], ...]:
    """How many operators of each kind a stage has, the most frequent first."""
    return tuple(Counter(graph.ops[index].kind for index in stage.operators).most_common())


def left_over(graph: PipelineGraph, stage: StageFigures) -> list[str]:
    """Kinds of its operators that the compiler leaves to the processor."""
    return sorted({graph.ops[index].kind for index in stage.operators} - ON_TPU)


def has_work(graph: PipelineGraph, stage: StageFigures) -> bool:
    """Is there something that a TPU multiplies?"""
    return stage.macs > 0 and any(graph.ops[index].kind in ON_TPU for index in stage.operators)


def parts(plan: PipelinePlan, number: int, stage: StageFigures) -> Parts:
    """Parts of the predicted time of a stage on a stick; empty for other devices."""
    if number in plan.beside:
        return ()
    cost = plan.options.cost
    rest = (
        ("call", cost.call_ms),
        ("streamed parameters", stage.streamed_bytes / cost.stream_bytes_per_ms),
        ("input", stage.in_bytes / cost.in_bytes_per_ms),
        ("output", stage.out_bytes / cost.out_bytes_per_ms),
    )
    overhead = cost.overhead_ms(stage.streamed_bytes, stage.in_bytes, stage.out_bytes)
    return (("arithmetic", max(0.0, stage.time_ms - overhead)), *rest)


def reasons(plan: PipelinePlan, model: int, number: int) -> Iterator[str]:
    """Sentences: what limits the stage, what its cache holds, and why it ends where it does."""
    graph, figures = plan.graphs[model], plan.figures[model]
    stage, cost, period = figures[number], plan.options.cost, plan.totals.period_ms
    if len(plan.graphs) == 1:
        if stage.time_ms >= period:
            yield "The slowest stage: it sets the time between results."
        elif stage.streamed_bytes and period > max(one.time_ms for one in figures):
            yield f"The hub takes {period:,.2f} ms for all streamed parameters: that sets the time."
        elif stage.time_ms < (1 - _SMALL) * period:
            yield f"Waits {period - stage.time_ms:,.2f} ms of each {period:,.2f} ms."
    if number not in plan.beside:
        if stage.streamed_bytes:
            yield (
                f"{stage.streamed_bytes:,} of {stage.param_bytes:,} B of parameters have no room "
                f"in the cache of {cost.cache_bytes:,} B: they are sent with every frame."
            )
        else:
            yield f"Its {stage.param_bytes:,} B of parameters stay in the cache."
        left = left_over(graph, stage)
        if left:
            yield f"{', '.join(left)} and all that follows run on the processor, not on the TPU."
        if not has_work(graph, stage):
            yield "Nothing to multiply: a TPU gains nothing here."
    if number + 1 < len(figures):
        yield f"{stage.out_bytes:,} B leave it. {_cut(graph, stage)}"


def _cut(graph: PipelineGraph, stage: StageFigures) -> str:
    """How the bytes that leave a stage compare with those that other cuts of it would pass."""
    inside = set(stage.operators)
    last = max(stage.operators, default=-1)
    made = {tensor for index in inside for tensor in graph.ops[index].outputs}
    sizes = [graph.tensors[tensor].size_bytes for tensor in made]
    if not sizes:
        return ""
    smaller = sum(size < stage.out_bytes for size in sizes)
    where = f"Cut after operator {last}, {graph.ops[last].kind}"
    if not smaller:
        return f"{where}: none of the stage's tensors is smaller."
    return f"{where}: {smaller} of the stage's {len(sizes)} tensors are smaller."

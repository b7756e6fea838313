"""Plans, runs and simulations as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from toolchain.edgetpu.model.figures import Figures
from toolchain.edgetpu.plan.planner import Apart, PipelinePlan
from toolchain.edgetpu.run.compiler import CompilerReport, differences
from toolchain.edgetpu.run.folder import ModelStages, PipelineFolder, StageFile
from toolchain.edgetpu.run.runner import RunTimes
from toolchain.edgetpu.run.simulate import Simulation


def totals_json(plan: PipelinePlan) -> dict[str, Any]:
    totals = plan.totals
    return {
        "max_stage_bytes": totals.max_stage_bytes,
        "spill_bytes": totals.spill_bytes,
        "streamed_bytes": totals.streamed_bytes,
        "communication_bytes": totals.communication_bytes,
        "stages_ms": list(totals.stages_ms),
        "period_ms": totals.period_ms,
    }


def plan_json(plan: PipelinePlan) -> dict[str, Any]:
    """`stages` is a list for one model, a list per model if there are several."""
    models = [_stages(figures) for figures in plan.figures]
    return {
        "models": [graph.name for graph in plan.graphs],
        "objective": plan.options.objective,
        "stages": models[0] if len(models) == 1 else models,
        **totals_json(plan),
        "sticks": plan.sticks,
        "host_stage": plan.host,
        "mcu_stage": plan.mcu,
        "board": plan.board or None,
        "cache_bytes": plan.options.cost.cache_bytes,
        "balance_by": plan.options.balance,
        "proved_optimal": plan.proved_optimal,
        "proofs": [
            {
                "objective": proof.objective,
                "value": proof.value,
                "lower_bound": proof.bound,
                "gap": proof.gap,
                "optimal": proof.optimal,
            }
            for proof in plan.proofs
        ],
        "seconds": plan.seconds,
    }


def _stages(figures: Figures) -> list[dict[str, Any]]:
    return [
        {
            "operators": list(stage.operators),
            "param_bytes": stage.param_bytes,
            "spill_bytes": stage.spill_bytes,
            "streamed_bytes": stage.streamed_bytes,
            "in_bytes": stage.in_bytes,
            "out_bytes": stage.out_bytes,
            "macs": stage.macs,
            "time_ms": stage.time_ms,
        }
        for stage in figures.stages
    ]


def plan_table(plan: PipelinePlan) -> Table:
    table = Table(title=f"{plan.stages} stages by {plan.options.objective}", header_style="bold")
    if len(plan.graphs) > 1:
        table.add_column("model")
    table.add_column("stage", justify="right")
    if plan.beside:
        table.add_column("on")
    table.add_column("operators", no_wrap=True)
    for heading in ("param B", "spill B", "streamed B", "in B", "out B", "ms"):
        table.add_column(heading, justify="right")
    for graph, figures in zip(plan.graphs, plan.figures, strict=True):
        for number, stage in enumerate(figures.stages):
            device = {plan.host: "host", plan.mcu: plan.board}.get(number, "stick")
            row = [
                str(number),
                *([device] if plan.beside else []),
                ranges(stage.operators),
                f"{stage.param_bytes:,}",
                f"{stage.spill_bytes:,}",
                f"{stage.streamed_bytes:,}",
                f"{stage.in_bytes:,}",
                f"{stage.out_bytes:,}",
                f"{stage.time_ms:.2f}",
            ]
            table.add_row(*([graph.name] if len(plan.graphs) > 1 else []), *row)
    return table


def ranges(numbers: Sequence[int], most: int = 6) -> str:
    """`0-7, 9, 12-14`, cut short after a few."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [f"{a}-{b}" if b > a else str(a) for a, b in runs[:most]]
    return ", ".join(texts) + (f", ... ({len(numbers)} in all)" if len(runs) > most else "")


def proof_lines(plan: PipelinePlan) -> list[str]:
    """What is proved, one line for each objective."""
    if not plan.proofs:
        return [f"{plan.options.objective} is a baseline: nothing is proved of it."]
    lines = []
    for proof in plan.proofs:
        unit = "ms" if proof.objective == "period" else "B"
        form = ",.3f" if unit == "ms" else ",.0f"
        known = (
            "proved optimal"
            if proof.optimal
            else f"lower bound {proof.bound:{form}} {unit}, gap {proof.gap:.1%}"
        )
        lines.append(f"{proof.objective}: {proof.value:{form}} {unit}, {known}")
    return lines


def host_line(plan: PipelinePlan, without: PipelinePlan) -> str:
    """What the host gains beside the same number of sticks."""
    before, now = without.totals.period_ms, plan.totals.period_ms
    if plan.host is None:
        return f"The host takes no stage: {before:.2f} ms without it is no longer than with it."
    sticks = {0: "no stick", 1: "1 stick"}.get(plan.sticks, f"{plan.sticks} sticks")
    return (
        f"Stage {plan.host} is on the host, beside {sticks}: {now:.2f} ms between results; "
        f"{before:.2f} ms with {without.stages} and no host ({before / now:.2f} times as long)."
    )


def mcu_line(plan: PipelinePlan) -> str:
    """Where the microcontroller is in the plan, and what its link takes of the stage."""
    if plan.mcu is None:
        return "The microcontroller takes no stage: the period is no longer without it."
    found = plan.figures[0].stages[plan.mcu]
    return (
        f"Stage {plan.mcu} is on {plan.board}: {found.time_ms:.2f} ms, of which "
        f"{found.in_bytes + found.out_bytes:,} B pass its link."
    )


def totals_line(plan: PipelinePlan) -> str:
    totals = plan.totals
    return (
        f"largest stage {totals.max_stage_bytes:,} B, spill {totals.spill_bytes:,} B, "
        f"communication {totals.communication_bytes:,} B, "
        f"predicted period {totals.period_ms:.2f} ms ({1e3 / totals.period_ms:.1f} results/s), "
        f"planned in {plan.seconds:.2f} s"
    )


def children_line(plan: PipelinePlan, free: PipelinePlan) -> str:
    """The cost of keeping the readers of a tensor in one stage (formulation (14))."""
    ours, theirs = plan.totals, free.totals

    def change(now: float, then: float) -> str:
        return f"{now / then - 1:+.1%}" if then else f"{now:+,.0f}"

    return (
        "children of a fan-out in one stage: largest stage "
        f"{change(ours.max_stage_bytes, theirs.max_stage_bytes)}, communication "
        f"{change(ours.communication_bytes, theirs.communication_bytes)}, period "
        f"{change(ours.period_ms, theirs.period_ms)} against children in any stage"
    )


def compiled_json(
    folder: PipelineFolder, reports: Sequence[Sequence[CompilerReport]]
) -> list[list[dict[str, Any]]]:
    """edgetpu_compiler's reports: a list per model with an entry for each stage."""
    return [
        [
            {
                "stage": place,
                "on_chip_bytes": column[number].on_chip_bytes,
                "off_chip_bytes": column[number].off_chip_bytes,
                "operators_on_cpu": column[number].processor_operations,
                "differences": list(differences(stage, column[number])),
            }
            for (place, stage), column in zip(_on_sticks(model), reports, strict=True)
        ]
        for number, model in enumerate(folder.models)
    ]


def _on_sticks(model: ModelStages) -> list[tuple[int, StageFile]]:
    return [(place, stage) for place, stage in enumerate(model.stages) if stage.on_stick]


def compiled_lines(
    folder: PipelineFolder, reports: Sequence[Sequence[CompilerReport]]
) -> list[str]:
    """The compiler's report of every stage, and where it differs from the plan."""
    lines = []
    for model, stages in zip(folder.models, compiled_json(folder, reports), strict=True):
        for told in stages:
            lines.append(
                f"{model.name} stage {told['stage']}: {told['on_chip_bytes']:,} B on chip, "
                f"{told['off_chip_bytes']:,} B off chip, {told['operators_on_cpu']} operators on "
                "the CPU"
            )
            lines += [f"  {line}" for line in told["differences"]]
    return lines


def sticks_table(plans: Sequence[PipelinePlan], best: PipelinePlan) -> Table:
    """Period against the number of sticks, with a bar for each."""
    table = Table(title="period against sticks", header_style="bold")
    for heading in ("sticks", "period ms", "results/s", "speedup", "largest stage B", "streamed B"):
        table.add_column(heading, justify="right")
    table.add_column("period", no_wrap=True)
    longest = max(plan.totals.period_ms for plan in plans)
    first = plans[0].totals.period_ms
    for plan in plans:
        period = plan.totals.period_ms
        table.add_row(
            f"{plan.sticks}{'' if plan.host is None else ' + host'}{' *' if plan is best else ''}",
            f"{period:.2f}",
            f"{1e3 / period:.1f}",
            f"{first / period:.2f}",
            f"{plan.totals.max_stage_bytes:,}",
            f"{plan.totals.streamed_bytes:,}",
            "#" * max(1, round(32 * period / longest)),
        )
    return table


def sticks_line(best: PipelinePlan) -> str:
    """How many sticks `--stages auto` chose, and why."""
    pay = "1 stick pays" if best.sticks == 1 else f"{best.sticks} sticks pay"
    return f"{pay} (*): more shorten the period by less than 5%."


def apart_line(plan: PipelinePlan, apart: Apart | None) -> str:
    """The models together compared with each on its own sticks."""
    if apart is None:
        few = "1 stick is" if plan.stages == 1 else f"{plan.stages} sticks are"
        return f"{few} too few to give each model its own."
    shares = ", ".join(
        f"{found.graphs[0].name} {count}"
        for found, count in zip(apart.plans, apart.sticks, strict=True)
    )
    together = plan.totals.period_ms
    better = (
        "together is faster"
        if together <= apart.period_ms
        else "apart is faster: plan, split and run each model on its own sticks (--device)"
    )
    return (
        f"Each model on sticks of its own ({shares}): {apart.period_ms:.2f} ms for a result of "
        f"every model; together {together:.2f} ms: {better}."
    )


def simulation_json(simulation: Simulation) -> dict[str, Any]:
    frames = simulation.frames
    return {
        "backend": "simulation",
        "frames": frames,
        "period_ms": simulation.period_ms,
        "latency_ms": simulation.latency_ms,
        "first_ms": simulation.first_ms,
        "hub_share": simulation.hub_share,
        "stages": [
            {
                "busy_ms": stage.busy_ms / frames,
                "queue_ms": stage.queue_ms / frames,
                "stream_ms": stage.stream_ms / frames,
                "starved_ms": stage.starved_ms / frames,
                "blocked_ms": stage.blocked_ms / frames,
            }
            for stage in simulation.stages
        ],
    }


def simulation_table(simulation: Simulation) -> Table:
    table = Table(title="a frame in each stage, ms (mean)", header_style="bold")
    for heading in ("stage", "busy", "of it streaming", "frame waits", "starved", "blocked"):
        table.add_column(heading, justify="right")
    for number, stage in enumerate(simulation.stages):
        table.add_row(
            str(number),
            *(
                f"{value / simulation.frames:.2f}"
                for value in (
                    stage.busy_ms,
                    stage.stream_ms,
                    stage.queue_ms,
                    stage.starved_ms,
                    stage.blocked_ms,
                )
            ),
        )
    return table


def stall_line(simulation: Simulation) -> str:
    """One sentence on where the pipeline stalls."""
    if simulation.hub_share > 0.98:
        return "The hub is the bottleneck: parameters stream over it all the time."
    slowest = max(
        range(len(simulation.stages)), key=lambda k: simulation.stages[k].busy_ms, default=0
    )
    busy = simulation.stages[slowest].busy_ms / simulation.frames
    return f"Stage {slowest} is the bottleneck: {busy:.2f} ms a frame; the others wait for it."


def run_json(backend: str, times: RunTimes | None, frames: int, span_ms: float) -> dict[str, Any]:
    if times is None:  # Google's runner measures nothing inside
        return {
            "backend": backend,
            "frames": frames,
            "period_ms": span_ms / frames if frames else 0.0,
            "latency_ms": None,
            "stages": [],
        }
    return {
        "backend": backend,
        "frames": times.frames,
        "period_ms": times.period_ms,
        "latency_ms": times.mean_latency_ms,
        "first_ms": times.first_ms,
        "stages": [
            {
                "busy_ms": stage.busy_ms / max(1, stage.frames),
                "queue_ms": stage.queue_ms / max(1, stage.frames),
                "transfer_ms": stage.transfer_ms / max(1, stage.frames),
                "blocked_ms": stage.blocked_ms / max(1, stage.frames),
                "slowest_ms": stage.slowest_ms,
            }
            for stage in times.stages
        ],
    }


def run_table(fields: dict[str, Any]) -> Table:
    table = Table(title="a frame in each stage, ms (mean)", header_style="bold")
    for heading in ("stage", "busy", "of it transfer", "frame waits", "blocked", "slowest"):
        table.add_column(heading, justify="right")
    for number, stage in enumerate(fields["stages"]):
        keys = ("busy_ms", "transfer_ms", "queue_ms", "blocked_ms", "slowest_ms")
        table.add_row(str(number), *(f"{stage[key]:.3f}" for key in keys))
    return table

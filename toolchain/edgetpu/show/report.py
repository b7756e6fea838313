"""Plans, runs and simulations as tables and sentences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from toolchain.edgetpu.plan.devices import Place, Setting, Sharing
from toolchain.edgetpu.plan.planner import Apart, PipelinePlan
from toolchain.edgetpu.plan.rates import Baseline, RatePlan, Routes, highest_factor
from toolchain.edgetpu.run.compiler import CompilerReport
from toolchain.edgetpu.run.folder import PipelineFolder
from toolchain.edgetpu.run.simulate import Arrivals, RequestTrace, Served, Simulation
from toolchain.edgetpu.show.documents import compiled_json
from toolchain.edgetpu.show.reasons import has_work, left_over

_OBJECTIVES = {
    "mean": ("mean latency", "mean ms"),
    "worst": ("largest 99th percentile", "worst p99 ms"),
}
"""Names of an objective of latency: in a sentence, and above a column."""
SIMULATED = {
    "busy": "busy_ms",
    "of it streaming": "stream_ms",
    "frame waits": "queue_ms",
    "starved": "starved_ms",
    "blocked": "blocked_ms",
}
"""Columns of a simulation: headings, and the milliseconds of a stage in JSON."""
_MEASURED = {
    "busy": "busy_ms",
    "of it transfer": "transfer_ms",
    "frame waits": "queue_ms",
    "blocked": "blocked_ms",
    "slowest": "slowest_ms",
}
"""Columns of a run, likewise."""
_SHARING = {
    Sharing.RESIDENT: "kept",
    Sharing.DIVIDED: "share the cache",
    Sharing.SWAPPED: "swapped",
    Sharing.HOST: "",
}


def _table(left: Sequence[str], right: Sequence[str], title: str | None = None) -> Table:
    """An empty table: columns of words, then of numbers."""
    table = Table(title=title, header_style="bold")
    _add_columns(table, left, right)
    return table


def _add_columns(table: Table, left: Sequence[str], right: Sequence[str]) -> None:
    """Ranges of operators are not broken."""
    for heading in left:
        table.add_column(heading, no_wrap=heading == "operators")
    for heading in right:
        table.add_column(heading, justify="right")


def plan_table(plan: PipelinePlan) -> Table:
    several = len(plan.graphs) > 1
    numbers = ("param B", "spill B", "streamed B", "in B", "out B", "ms")
    table = Table(title=f"{plan.stages} stages by {plan.options.objective}", header_style="bold")
    if several:
        table.add_column("model")
    table.add_column("stage", justify="right")
    if plan.beside:
        table.add_column("on")
    _add_columns(table, ("operators",), numbers)
    for graph, figures in zip(plan.graphs, plan.figures, strict=True):
        for number, stage in enumerate(figures):
            device = {plan.host: "host", plan.mcu: plan.board}.get(number, "stick")
            sizes = (stage.param_bytes, stage.spill_bytes, stage.streamed_bytes)
            table.add_row(
                *([graph.name] if several else []),
                str(number),
                *([device] if plan.beside else []),
                ranges(stage.operators),
                *(f"{size:,}" for size in (*sizes, stage.in_bytes, stage.out_bytes)),
                f"{stage.time_ms:.2f}",
            )
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
    """The proofs of a plan, one line for each objective."""
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
    """The gain by the host beside as many sticks."""
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
    stage = plan.figures[0][plan.mcu]
    return (
        f"Stage {plan.mcu} is on {plan.board}: {stage.time_ms:.2f} ms, of which "
        f"{stage.in_bytes + stage.out_bytes:,} B pass its link."
    )


def totals_line(plan: PipelinePlan) -> str:
    totals = plan.totals
    return (
        f"largest stage {totals.max_stage_bytes:,} B, spill {totals.spill_bytes:,} B, "
        f"communication {totals.communication_bytes:,} B, "
        f"predicted period {totals.period_ms:.2f} ms ({1e3 / totals.period_ms:.1f} results/s), "
        f"planned in {plan.seconds:.2f} s"
    )


def idle_lines(plan: PipelinePlan) -> list[str]:
    """Stages on sticks in which a TPU has nothing to multiply, operators that stay on the
    processor, and fewer stages where that would spare a stick.
    """
    lines, idle = [], set(range(plan.stages))
    for graph, figures in zip(plan.graphs, plan.figures, strict=True):
        whose = f"{graph.name}: " if len(plan.graphs) > 1 else ""
        for number, stage in enumerate(figures):
            if number in (plan.host, plan.mcu):
                idle.discard(number)
                continue
            kinds = [graph.ops[index].kind for index in stage.operators]
            left = left_over(graph, stage)
            if has_work(graph, stage):
                idle.discard(number)
            else:
                lines.append(
                    f"{whose}stage {number} has {stage.param_bytes:,} B of parameters and nothing "
                    f"to multiply ({', '.join(dict.fromkeys(kinds)) or 'no operator'}): a TPU "
                    "gains nothing there."
                )
            if left:
                lines.append(
                    f"{whose}stage {number}: {', '.join(left)} stay on the processor, with all "
                    "that follows: Coral's list of operators for the TPU has them not."
                )
    busy = plan.stages - len(idle)
    if idle and busy:
        lines.append(f"{busy} stage{'s' if busy > 1 else ''} would do as much: --stages {busy}.")
    return lines


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
    numbers = ("sticks", "period ms", "results/s", "speedup", "largest stage B", "streamed B")
    table = _table((), numbers, "period against sticks")
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


def sticks_line(plans: Sequence[PipelinePlan], best: PipelinePlan) -> str:
    """How many sticks of those tried `--stages auto` chose, and why."""
    pay = "1 stick pays" if best.sticks == 1 else f"{best.sticks} sticks pay"
    if best is plans[-1]:
        return f"{pay} (*): more were not tried."
    return f"{pay} (*): more shorten the period by less than 5%."


def apart_line(plan: PipelinePlan, apart: Apart | None) -> str:
    """The models together compared with each on its own sticks."""
    if apart is None:
        few = "1 stick is" if plan.stages == 1 else f"{plan.stages} sticks are"
        return f"{few} too few to give each model its own."
    shares = ", ".join(
        f"{one.graphs[0].name} {count}"
        for one, count in zip(apart.plans, apart.sticks, strict=True)
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


def simulation_table(simulation: Simulation) -> Table:
    return _frames_table(SIMULATED, simulation.stages_json(), 2)


def run_table(fields: dict[str, Any]) -> Table:
    return _frames_table(_MEASURED, fields["stages"], 3)


def _frames_table(columns: Mapping[str, str], stages: Sequence[Any], digits: int) -> Table:
    """A row for each stage, with its milliseconds of each of the `columns`."""
    table = _table((), ("stage", *columns), "a frame in each stage, ms (mean)")
    for number, stage in enumerate(stages):
        table.add_row(str(number), *(f"{stage[key]:.{digits}f}" for key in columns.values()))
    return table


def hub_words(simulation: Simulation) -> str:
    """How much of the time parameters stream over the hub, which is all that sticks share there."""
    if not simulation.hub_share:
        return "no parameters stream over the hub"
    return f"parameters stream over the hub {simulation.hub_share:.1%} of the time"


def stall_line(simulation: Simulation) -> str:
    """One sentence on where the pipeline stalls."""
    if simulation.hub_share > 0.98:
        return "The hub is the bottleneck: parameters stream over it all the time."
    slowest = max(
        range(len(simulation.stages)), key=lambda k: simulation.stages[k].busy_ms, default=0
    )
    busy = simulation.stages[slowest].busy_ms / simulation.frames
    return f"Stage {slowest} is the bottleneck: {busy:.2f} ms a frame; the others wait for it."


def stages_table(plan: RatePlan) -> Table:
    models = f"{len(plan.graphs)} models" if len(plan.graphs) > 1 else plan.demand.names[0]
    numbers = ("param B", "streamed B", "swapped B", "ms")
    title = f"{models} by {plan.demand.objective} latency"
    table = _table(("model", "on", "operators"), numbers, title)
    table.add_column("weights")
    for name, path in zip(plan.demand.names, plan.places, strict=True):
        for place in path:
            sizes = (place.part.param_bytes, place.streamed_bytes, place.swapped_bytes)
            table.add_row(
                name,
                plan.setting.name(place.device),
                ranges(place.part.operators),
                *(f"{size:,}" for size in sizes),
                f"{plan.setting.alone_ms(place):.2f}",
                _SHARING[place.sharing],
            )
    return table


def latency_table(plan: Routes, trace: RequestTrace, arrivals: Arrivals) -> Table:
    """Latencies by model, predicted and simulated."""
    demand = plan.demand
    headings = ("requests/s", "deadline", "mean", "simulated", "p99", "simulated", "worst sim.")
    title = f"latency, ms (simulated: {arrivals} arrivals)"
    table = _table(("model",), (*headings, "late sim."), title)
    rows = zip(demand.rates, demand.deadlines_ms, plan.predicted, trace.models, strict=True)
    for name, (rate, limit, (mean, tail), served) in zip(demand.names, rows, strict=True):
        table.add_row(
            name,
            f"{rate:g}",
            "-" if limit is None else f"{limit:g}",
            _ms(mean),
            *_simulated(served, tail, grows=not math.isfinite(mean)),
        )
    return table


def _simulated(served: Served, tail: float, *, grows: bool) -> tuple[str, ...]:
    """Cells of a model; where a device is overloaded, latency grows as long as it is simulated."""
    if grows:
        late = "-" if served.late is None else "all in the end"
        return "grows", _ms(tail), "grows", "grows", late
    return (
        f"{served.mean_ms:.2f} ±{served.error_ms:.2f}",
        _ms(tail),
        f"{served.tail_ms:.2f}",
        f"{served.worst_ms:.1f}",
        "-" if served.late is None else f"{served.late:.2%}",
    )


def _ms(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "no end"


def busy_line(setting: Setting, busy: Sequence[float], bus: float) -> str:
    parts = [f"{setting.name(k)} {share:.0%}" for k, share in enumerate(busy)]
    return f"busy: {', '.join(parts)}; the bus {bus:.0%}"


def proof_line(plan: RatePlan) -> str:
    """The proof of a plan for rates, under the queueing model."""
    objective, _ = _OBJECTIVES[plan.demand.objective]
    scope = "" if plan.all_cuts else " of the cuts of one order"
    score, bound = plan.score, plan.bound
    if score.load:
        what, known = f"the busiest is {score.load:.0%} busy", f"{bound.load:.0%}"
        proved = bound.load >= 1
    elif score.late:
        what = f"the 99th percentile is up to {score.late:.2f} times its deadline"
        known, proved = f"{bound.late:.2f} times", not bound.met
    else:
        what, known = f"{objective} {score.objective_ms:.3f} ms", f"{bound.objective_ms:.3f} ms"
        proved = True
    if plan.proved_optimal:
        return f"{what}, proved optimal under the queueing model"
    if not proved:
        return f"{what}; that no plan meets the demand is not proved{scope}"
    gap = f", gap {plan.gap:.1%}" if plan.met else ""
    return f"{what}, lower bound{scope} {known}{gap}"


def unmet_lines(plan: RatePlan, most: float) -> list[str]:
    """The demands that are not met: which model, by how much, the busiest device, and rates that
    could be met. Empty where all is met. `most` is as in `rates_json`.
    """
    if plan.met:
        return []
    demand, predicted = plan.demand, plan.estimate
    busiest = "the bus" if predicted.busiest < 0 else plan.setting.name(predicted.busiest)
    lines = []
    if predicted.load >= 1:
        users = [
            name
            for name, path in zip(demand.names, plan.places, strict=True)
            if any(_uses(place, predicted.busiest) for place in path)
        ]
        lines.append(
            f"{busiest} is overloaded: {predicted.load:.0%} of its time is asked for, by "
            f"{', '.join(users)}"
        )
    for number, limit in enumerate(demand.deadlines_ms):
        name, tail, alone = demand.names[number], predicted.tail_ms[number], plan.alone[number]
        if limit is None or tail <= limit:
            continue
        if alone.service_ms > limit:
            lines.append(
                f"{name}: its deadline of {limit:g} ms is below {alone.service_ms:.2f} ms, what a "
                "request takes at least with nobody else there"
            )
        elif alone.tail_ms > limit:
            lines.append(
                f"{name}: with all devices to itself, 99% of its requests take up to "
                f"{alone.tail_ms:.2f} ms at least, its deadline is {limit:g} ms"
            )
        elif math.isfinite(tail):
            lines.append(
                f"{name}: 99% of its requests take up to {tail:.2f} ms, {tail - limit:.2f} ms more "
                f"than its deadline of {limit:g} ms; {busiest} is busiest, {predicted.load:.0%}"
            )
    if most > 0:
        rates = ", ".join(
            f"{name} {rate * most:.3g}"
            for name, rate in zip(demand.names, demand.rates, strict=True)
        )
        lines.append(
            f"the highest rates in this proportion that a plan was found for: {rates} a second "
            f"({most:.0%})"
        )
    else:
        lines.append("no plan was found for lower rates in this proportion either")
    if plan.proved_unmet:
        lines.append("no plan meets this: proved under the queueing model")
    return lines


def _uses(place: Place, device: int) -> bool:
    if device < 0:
        return bool(place.streamed_bytes or place.swapped_bytes)
    return place.device == device


def baselines_table(plan: RatePlan, others: Sequence[Baseline]) -> Table:
    """The plan beside other ways to place the models."""
    _, heading = _OBJECTIVES[plan.demand.objective]
    table = _table(("plan",), (heading, "busiest"), "beside other plans (predicted)")
    table.add_column("deadlines")
    rows = [("this one", plan.estimate, plan.score)]
    rows += [(other.name, other.estimate, other.score) for other in others]
    for name, predicted, score in rows:
        met = "overloaded" if score.load else ("missed" if score.late else "met")
        latency = "no end" if score.load else f"{score.objective_ms:.2f}"
        table.add_row(name, latency, f"{predicted.load:.0%}", met)
    return table


def requests_table(plan: Routes, rows: Sequence[Mapping[str, float | None]]) -> Table:
    """Latencies of a run: `rows` are those of `latencies`; predictions are for sticks."""
    headings = ("requests", "mean ms", "99% ms", "predicted mean", "99%")
    table = _table(("model",), headings)
    for name, (mean, tail), row in zip(plan.demand.names, plan.predicted, rows, strict=True):
        measured = ("-" if row[k] is None else f"{row[k]:.2f}" for k in ("mean_ms", "p99_ms"))
        table.add_row(name, f"{row['requests']}", *measured, f"{mean:.2f}", f"{tail:.2f}")
    return table


def late_lines(plan: RatePlan, trace: RequestTrace) -> list[str]:
    """Deadlines that the queueing model predicts to be met, and the simulation does not."""
    rows = zip(plan.demand.names, plan.demand.deadlines_ms, trace.models, strict=True)
    return [
        f"Simulated, {served.late:.2%} of the requests of {name} miss their deadline of {limit:g} "
        f"ms, more than the 1% that may: 99% take up to {served.tail_ms:.2f} ms, predicted were "
        f"{plan.estimate.tail_ms[number]:.2f} ms."
        for number, (name, limit, served) in enumerate(rows)
        if limit is not None
        and plan.estimate.tail_ms[number] <= limit
        and served.tail_ms > limit
        and served.late
    ]


def room_line(plan: RatePlan, most: float) -> str:
    """How far the rates may grow on this plan."""
    demand = plan.demand
    each = ", ".join(
        f"{name} {rate * highest_factor(plan, k):.3g}"
        for k, (name, rate) in enumerate(zip(demand.names, demand.rates, strict=True))
    )
    together = f"all rates times {most:.2f}, or " if len(demand.names) > 1 else ""
    return f"This plan would bear {together}one alone at most: {each} a second."

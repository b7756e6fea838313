"""Stages, timelines and periods as SVG pictures (`templates/edgetpu/`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolchain.codegen.environment import environment
from toolchain.edgetpu.plan.planner import PipelinePlan
from toolchain.edgetpu.run.simulate import Simulation

_COLOURS = ("#5b9bd5", "#70ad47", "#ed7d31", "#7030a0", "#c0504d", "#44546a")
SHOWN_FRAMES = 12
"""Frames of a timeline."""


def _drawn(picture: str, **values: Any) -> str:
    return environment().get_template(f"edgetpu/{picture}.svg.j2").render(values)


def stages_svg(plan: PipelinePlan) -> str:
    """A box for each stage of each model: parameters cached and streamed, time, transfers."""
    largest = max(1, *(s.param_bytes for figures in plan.figures for s in figures))
    boxes = []
    for row, (graph, figures) in enumerate(zip(plan.graphs, plan.figures, strict=True)):
        for number, stage in enumerate(figures):
            streamed = round(160 * stage.streamed_bytes / largest)
            boxes.append(
                {
                    "x": 20 + 220 * number,
                    "y": 44 + 152 * row,
                    "name": f"{graph.name[:14]} {number}",
                    "operators": len(stage.operators),
                    "time": f"{stage.time_ms:.2f}",
                    "cached_width": round(160 * stage.param_bytes / largest) - streamed,
                    "streamed_width": streamed,
                    "params": f"{stage.param_bytes / (1 << 20):.2f}",
                    "streamed": f"{stage.streamed_bytes / (1 << 20):.2f}",
                    "incoming": f"{stage.in_bytes / 1024:.1f}",
                    "outgoing": f"{stage.out_bytes / 1024:.1f}",
                    "arrow": number + 1 < plan.stages,
                }
            )
    proved = "proved optimal" if plan.proved_optimal else "not proved optimal"
    return _drawn(
        "stages",
        width=max(640, 20 + 220 * plan.stages),
        height=84 + 152 * len(plan.graphs),
        title=f"{', '.join(g.name for g in plan.graphs)}: {plan.stages} stages by "
        f"{plan.options.objective}, {proved}",
        boxes=boxes,
        footer=f"predicted period {plan.totals.period_ms:.2f} ms",
    )


def timeline_svg(simulation: Simulation, title: str) -> str:
    """A timeline of the first frames: which stage works on which."""
    shown = [stage.spans[:SHOWN_FRAMES] for stage in simulation.stages]
    end = max((span[1] for spans in shown for span in spans), default=1.0) or 1.0
    scale = 780 / end
    rows = [
        {
            "y": 44 + 34 * number,
            "bars": [
                {
                    "x": round(80 + begin * scale, 1),
                    "width": round(max(0.5, (finish - begin) * scale), 1),
                    "frame": frame,
                    "colour": _COLOURS[frame % len(_COLOURS)],
                }
                for frame, (begin, finish) in enumerate(spans)
            ],
        }
        for number, spans in enumerate(shown)
    ]
    ticks = [{"x": round(80 + 780 * k / 5), "text": f"{end * k / 5:.1f}"} for k in range(6)]
    return _drawn(
        "timeline", width=900, height=100 + 34 * len(rows), title=title, rows=rows, ticks=ticks
    )


def sticks_svg(plans: Sequence[PipelinePlan], best: PipelinePlan) -> str:
    """Predicted period against the number of sticks."""
    highest = max(plan.totals.period_ms for plan in plans)
    points = [
        {
            "x": 90 + 70 * number,
            "y": round(300 - 240 * plan.totals.period_ms / highest),
            "sticks": plan.stages,
            "period": f"{plan.totals.period_ms:.1f}",
            "best": plan is best,
        }
        for number, plan in enumerate(plans)
    ]
    return _drawn(
        "sticks",
        width=140 + 70 * len(plans),
        height=350,
        base=304,
        title=", ".join(graph.name for graph in best.graphs),
        points=points,
    )

"""Every search of ways to split: what it promises, how it ends, and what it finds."""

from __future__ import annotations

import csv
import io
import os
import re
import signal
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from toolchain.boards import board
from toolchain.cli import run
from toolchain.contact.network import Network
from toolchain.cost.predicted import predicted_model
from toolchain.errors import InputError
from toolchain.ir.about import NOTHING_KNOWN
from toolchain.ir.memory import peak_bytes
from toolchain.ir.removed import NOTHING_REMOVED
from toolchain.memory.plan import Plan
from toolchain.memory.problem import memory_problem
from toolchain.ops.lowering import lower
from toolchain.partition import Front, Point, Task, Watch, split_all, splitters
from toolchain.partition.search import Chains
from toolchain.partition.segments import Segment
from toolchain.planner import candidates, plan_graph
from toolchain.planning.choices import Choices
from toolchain.planning.options import PlanOptions
from toolchain.planning.ways import search
from toolchain.progress import Found, Report, silent
from toolchain.report.front import FrontRow, front_json, front_table
from toolchain.report.fronts.csv import front_csv
from toolchain.report.fronts.svg import front_svg
from toolchain.report.latency import predict_latency
from toolchain.search import Work


@cache
def inverted_bottlenecks() -> Plan:
    """A stem and three inverted bottlenecks, one with a skip connection: rows can stream."""
    net = Network("bottlenecks", (1, 48, 48, 3))
    x = net.conv(net.input, 8, 3, stride=2)
    for channels, stride in ((8, 1), (12, 2), (12, 1)):
        y = net.conv(x, 48, 1)
        y = net.depthwise(y, 3, stride=stride)
        y = net.conv(y, channels, 1)
        x = net.add(x, y) if stride == 1 and channels == 12 else y
    return plan_graph(net.classifier(x, 4), board("mps2-an500"), PlanOptions().unsplit)


def front_of(plan: Plan, options: PlanOptions | None = None, report: Report = silent) -> Front:
    target = board(plan.board)
    return search(plan, target, options or PlanOptions(), predicted_model(target), report)


@cache
def rows_of_a_front() -> tuple[FrontRow, ...]:
    options = PlanOptions(split_seconds=0.2)
    graph = inverted_bottlenecks().graph
    found = candidates(graph, board("mps2-an500"), options)
    return Choices(found, NOTHING_REMOVED, NOTHING_KNOWN).rows()


def peak_of(plan: Plan, point: Point) -> int:
    """Of the finer graph, in the order in which its blocks are meant to run."""
    finer = split_all(
        plan.graph.with_ops([plan.graph.ops[i] for i in plan.schedule.order]), point.schemes
    )
    lowered = lower(finer, board(plan.board).core, forms=dict(point.titles))
    problem = memory_problem(lowered, progressive=True)
    return peak_bytes(problem, range(len(finer.ops)))


@pytest.mark.slow
@pytest.mark.parametrize("name", splitters.names())
def test_points_are_smaller_and_dearer_and_come_true(name: str) -> None:
    plan = inverted_bottlenecks()
    front = front_of(plan, PlanOptions(splitter=name))
    assert not front.stopped
    first, *others = front.points
    assert first.extra == 0 or (first.extra < 0 and first.schemes)  # blocks that pad less
    smaller = first.peak_bytes < plan.schedule.peak_bytes
    assert first.schemes == () or first.extra < 0 or smaller  # the quickest may take more RAM
    assert others[-1].peak_bytes < plan.schedule.peak_bytes * 0.6
    for one, two in zip(front.points, others, strict=False):
        assert one.peak_bytes > two.peak_bytes
        assert one.extra < two.extra or not one.schemes
    for point in front.points:
        # Alignment is not predicted, nor what bands of sliding windows hold beside their scratch.
        # Of finished plans the peak is computed anew.
        assert peak_of(plan, point) <= 1.025 * point.peak_bytes + 64


@pytest.mark.slow
@pytest.mark.parametrize("name", splitters.names())
def test_equal_input_gives_an_equal_front(name: str) -> None:
    options = PlanOptions(splitter=name)
    one, two = (front_of(inverted_bottlenecks(), options) for _ in range(2))
    assert one.points == two.points


@pytest.mark.parametrize("name", splitters.names())
def test_ctrl_c_keeps_what_was_found(name: str) -> None:
    told: list[str] = []

    def report(text: str, done: int, total: int, found: Found = ()) -> None:
        told.append(text)
        if len(told) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    plan = inverted_bottlenecks()
    options = PlanOptions(splitter=name, max_slowdown=0.5)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job has none
    try:
        front = front_of(plan, options, report)
    finally:
        signal.signal(signal.SIGINT, before)
    assert front.stopped == "by Ctrl-C"
    assert len(told) == 3
    for point in front.points:
        assert peak_of(plan, point) <= point.peak_bytes + 64


@pytest.mark.parametrize("name", splitters.names())
def test_no_time_gives_the_graph_as_it_is(name: str) -> None:
    plan = inverted_bottlenecks()
    front = front_of(plan, PlanOptions(splitter=name, split_seconds=0))
    assert front.points[0].schemes == ()
    assert "0 s" in front.stopped


def test_an_unknown_splitter_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match=r"no splitter is called 'dice'.*auto, motes, tinyengine"):
        splitters.splitter("dice")


def test_the_input_is_kept_whole_and_a_graph_of_one_step_is_left_alone() -> None:
    net = Network("one", (1, 8, 8, 4))
    plan = plan_graph(net.graph(net.conv(net.input, 4, 1)), board("mps2-an500"))
    core = board(plan.board).core
    task = Task(
        plan.graph,
        memory_problem(lower(plan.graph, core)),
        plan.schedule.order,
        core,
        predicted_model(board(plan.board)),
    )
    for name in splitters.names():
        points = splitters.splitter(name).front(task, Watch()).points
        assert min(point.peak_bytes for point in points) == plan.schedule.peak_bytes
        assert not any(point.schemes for point in points)


@pytest.mark.slow
def test_a_row_of_the_table_is_a_budget_and_the_plot_shows_every_point() -> None:
    rows = rows_of_a_front()
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(front_table(rows, "front"))
    shown = [float(found) / 100 for found in re.findall(r"(\d+\.\d\d)%", console.export_text())]
    assert len(shown) == len(rows)
    for budget, row, after in zip(shown, rows, [*rows[1:], None], strict=True):
        assert row.slowdown <= budget
        assert after is None or budget < after.slowdown or budget - row.slowdown < 1e-4
    entries = front_json(rows)
    quickest = entries[0]["total"]
    for entry, row in zip(entries, rows, strict=True):
        assert entry["total"] == row.latency.total
        assert entry["total"] / quickest == pytest.approx(1 + row.slowdown, rel=1e-9)
    plot = ElementTree.fromstring(front_svg(rows, "RAM < slow & small"))
    tips = [tip.text for tip in plot.iter("{http://www.w3.org/2000/svg}title")]
    assert tips == [f"{row.peak_bytes:,} B at {row.slowdown:.2%}" for row in rows]
    (line,) = plot.iter("{http://www.w3.org/2000/svg}polyline")
    heights = [float(corner.split(",")[1]) for corner in line.attrib["points"].split()]
    assert heights == sorted(heights), "a staircase goes down"


def test_a_front_of_one_point_can_be_drawn() -> None:
    latency = predict_latency(inverted_bottlenecks())
    row = FrontRow(1, 0, 0, 0, 0, 0, 0.0, latency, ())
    ElementTree.fromstring(front_svg([row], "empty"))


def test_a_spreadsheet_has_every_point() -> None:
    rows = rows_of_a_front()
    lines = list(csv.DictReader(io.StringIO(front_csv(rows, "front"))))
    assert [int(line["peak_bytes"]) for line in lines] == [row.peak_bytes for row in rows]
    for line, row in zip(lines, rows, strict=True):
        assert float(line["slowdown_percent"]) == pytest.approx(100 * row.slowdown, abs=1e-4)
        assert bool(line["splits"]) == bool(row.splits)
        assert int(line["flash_bytes"]) == row.flash_bytes
        assert int(line["total"]) == row.latency.total


def test_an_ending_that_is_no_format_is_refused_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", str(tmp_path / "absent.tflite"), "-b", "host", "--plot", "front.bmp"]) == 2
    assert "no format is called 'bmp'; endings are .csv, .svg" in capsys.readouterr().err


def test_where_one_step_holds_the_peak_others_stay_clear_of_it() -> None:
    """The first step takes 1,000 bytes in any case. The second is cheapest with 990, which leaves
    no room beside either where their tensors cannot lie as closely as they should."""
    chains = Chains(2, Work(1.0))
    first, large = Segment(0, 1, 1000, 0), Segment(1, 2, 2000, 0)
    for segment in (first, large, Segment(1, 2, 990, 1), Segment(1, 2, 900, 5)):
        chains.add(segment)
    assert [[s.extra for s in chain] for chain in chains.front()] == [[0, 0], [0, 1]]
    assert [[s.extra for s in chain] for chain in chains.front(room=0.06)] == [[0, 5]]

"""Equal input gives an equal plan: limits count work, whatever the clock shows."""

from __future__ import annotations

import ast
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import toolchain
from tests.pure.test_arrangement import random_problem
from tests.pure.test_splitters import inverted_bottlenecks
from toolchain import arena, schedule
from toolchain.boards import board
from toolchain.cli import run
from toolchain.cost.predicted import predicted_model
from toolchain.ir import ArenaProblem, Block
from toolchain.ir.printer import graph_text
from toolchain.memory import arrangement
from toolchain.partition import Front, splitters
from toolchain.planner import plan_graph
from toolchain.planning.options import PlanOptions
from toolchain.planning.ways import search
from toolchain.search import Work, solve

PACKAGE = Path(toolchain.__file__).parent
MAY_READ_CLOCKS = (
    "bench/",  # waits for boards
    "cli/",  # tells how long a command took
    "contact/",  # times a board, and itself
    "cost/database.py",  # waits for a lock
    "deployment/measurements.py",  # when a kernel was measured
    "device/",
    "edgetpu/run/backends.py",  # these three run pipelines, and measure them
    "edgetpu/run/coral.py",
    "edgetpu/run/runner.py",
    "page/live.py",  # ends connections of slow clients
    "search/stopwatch.py",
    "sweep/",  # workers, and when a row was written; plans are made elsewhere
    "timing/",  # measures kernels
)
CLOCKS = ("time", "monotonic", "perf_counter", "process_time", "thread_time")


def clock_uses(source: str) -> list[str]:
    """Where Python code imports a clock, decides by `.seconds`, or limits CP-SAT by one."""
    found = []
    for node in ast.walk(ast.parse(source)):
        imported: list[str | None] = []
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imported = [node.module]
        found += [f"imports {name}" for name in imported if name in ("time", "datetime")]
        tests: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            tests = [node]
        elif isinstance(node, ast.If | ast.While | ast.IfExp):
            tests = [node.test]
        for inner in (inner for test in tests for inner in ast.walk(test)):
            if isinstance(inner, ast.Attribute) and inner.attr == "seconds":
                found.append(f"decides by {ast.unparse(inner)}")
        named = getattr(node, "attr", None) or getattr(node, "arg", None)
        if named == "max_time_in_seconds":
            found.append("limits CP-SAT by the clock")
    return found


@pytest.mark.slow
def test_no_module_that_decides_plans_reads_a_clock() -> None:
    found = {}
    for file in PACKAGE.rglob("*.py"):
        name = file.relative_to(PACKAGE).as_posix()
        if not name.startswith(MAY_READ_CLOCKS) and (uses := clock_uses(file.read_text())):
            found[name] = uses
    assert not found, "count work (toolchain.search.Work), or take a Stopwatch for a report"


def test_cp_sat_is_started_in_one_place() -> None:
    """`CpSolver` elsewhere might be given threads or a clock."""
    using = [
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if "CpSolver()" in file.read_text()
    ]
    assert using == ["search/solver.py"]


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from time import monotonic",
        "import datetime as clock",
        "while watch.seconds < 3: pass",
        "over = begin + watch.seconds > limit",
        "solver.parameters.max_time_in_seconds = 3",
        "solve(model, max_time_in_seconds=3)",
    ],
)
def test_a_clock_that_decides_is_found(source: str) -> None:
    assert clock_uses(source)


class _Clock:
    """Goes on by `step` seconds whenever it is read."""

    def __init__(self, step: float) -> None:
        self.now, self.step = 1e6, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


STEPS = {"stopped": 0.0, "slow": 1e-3, "racing": 1e5}
"""Seconds by which a clock goes on at each look."""


def same(wanted: Callable[[], Any]) -> Any:
    """What is given under the real clock, if it is given under the others, too."""
    given = wanted()
    for clock, step in STEPS.items():
        with pytest.MonkeyPatch.context() as patch:
            for name in CLOCKS:
                patch.setattr(time, name, _Clock(step))
            again = wanted()
        assert given == again, clock
    return given


def tight(count: int, seed: int, lives: int = 12) -> ArenaProblem:
    """Blocks that no search of a fraction of a second gets down to their load."""
    rng = random.Random(seed)
    starts = [rng.randrange(2 * count) for _ in range(count)]
    return ArenaProblem(
        tuple(
            Block(f"b{i}", start, start + rng.randint(1, lives), rng.randint(40, 400))
            for i, start in enumerate(starts)
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", arena.names())
def test_an_arena(name: str) -> None:
    problem = tight(300, 1, lives=60)

    def place() -> Any:
        found = arena.allocator(name).place(problem, 0.3)
        return found, found.work_seconds

    found, spent = same(place)
    if name == arena.DEFAULT:
        assert spent >= 0.3, "no limit is tried here unless the search is cut off"
        assert not found.proved_optimal


@pytest.mark.parametrize("name", schedule.names())
def test_an_order(name: str) -> None:
    problem = random_problem(121)
    cut_off = 0.002
    same(lambda: schedule.scheduler(name).schedule(problem, cut_off))


def test_other_orders() -> None:
    problem, exact = random_problem(498), arena.allocator("exact")
    first = arrangement.place(problem, schedule.scheduler("auto").schedule(problem), exact)
    best = same(lambda: arrangement.compact(problem, first, exact))
    assert best.schedule.order != first.schedule.order


@pytest.mark.slow
@pytest.mark.parametrize("name", splitters.names())
def test_ways_to_split(name: str) -> None:
    plan, options = inverted_bottlenecks(), PlanOptions(splitter=name, split_seconds=0.01)

    def front() -> tuple[Any, ...]:
        target = board(plan.board)
        found: Front = search(plan, target, options, predicted_model(target))
        return found.points, found.others, found.total, found.stopped

    assert same(front)[-1], "the search is to be cut off"


@pytest.mark.slow
def test_splits_that_are_nearly_free() -> None:
    graph = inverted_bottlenecks().graph
    options = PlanOptions(split_seconds=0.01)

    def plan() -> tuple[Any, ...]:
        made = plan_graph(graph, board("mps2-an500"), options)
        return graph_text(made.graph), dict(made.arena.offsets), made.search_stopped

    assert same(plan)[-1], "the search is to be cut off"


@pytest.mark.slow
def test_a_plan() -> None:
    """All of it: order, finer graph, arena. The sweeps of a split plan ask CP-SAT."""
    graph = inverted_bottlenecks().graph
    options = PlanOptions(max_slowdown=0.1, split_seconds=0.1, time_limit_seconds=0.3)

    def plan() -> tuple[Any, ...]:
        made = plan_graph(graph, board("mps2-an500"), options)
        kernels = ("graph", "lowered")  # which are a function of the graph and the core
        others = {f.name: getattr(made, f.name) for f in fields(made) if f.name not in kernels}
        return graph_text(made.graph), others

    _, made = same(plan)
    assert len(made["operators"]) > len(graph.ops)


def test_offsets_in_a_file(tmp_path: Path) -> None:
    blocks = tight(120, 3, lives=40).blocks
    file = tmp_path / "buffers.csv"
    rows = (f"{b.name},{b.start},{b.end},{b.size_bytes}" for b in blocks)
    file.write_text("id,lower,upper,size\n" + "\n".join(rows) + "\n")

    def offsets() -> bytes:
        out = tmp_path / "offsets.csv"
        assert run(["arena", str(file), "--time-limit", "0.2", "-o", str(out)]) == 0
        return out.read_bytes()

    same(offsets)


@pytest.fixture
def machine() -> Iterator[Any]:
    """A program that CP-SAT does not solve at once: the arena of blocks that all live together
    in part."""
    from ortools.sat.python import cp_model

    rng, model = random.Random(5), cp_model.CpModel()
    size = model.new_int_var(0, 4000, "size")
    times, offsets = [], []
    for _ in range(60):
        start, length, height = rng.randrange(40), rng.randint(2, 15), rng.randint(20, 90)
        at = model.new_int_var(0, 4000, "")
        times.append(model.new_fixed_size_interval_var(start, length, ""))
        offsets.append(model.new_fixed_size_interval_var(at, height, ""))
        model.add(at + height <= size)
    model.add_no_overlap_2d(times, offsets)
    model.minimize(size)
    yield model


def test_cp_sat_ends_after_the_same_work(machine: Any) -> None:
    """Cut off at several places, each twice."""
    for limit in (0.01, 0.05, 0.2):
        answers = []
        for _ in range(2):
            work = Work(limit)
            solver, status = solve(machine, work, 1.0)
            offsets = tuple(solver.response_proto.solution)
            answers.append((status, offsets, solver.best_objective_bound, work.spent))
        assert answers[0] == answers[1]


def test_work_is_counted() -> None:
    work = Work(1e-6)
    work.spend(999)
    assert not work.over
    assert work.left_seconds == pytest.approx(1e-9)
    work.spend_seconds(3e-9)
    assert work.over
    assert (work.spent, work.left_seconds) == (1002, 0.0)
    assert Work(0.0).over
    assert not Work().over

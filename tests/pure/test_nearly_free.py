"""Splits that cost at most 1% are part of every plan; what refuses them, and what is said."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.pure.test_splitters import inverted_bottlenecks
from tests.support.graphs import dense_chain, skip_network
from tests.support.tflite_writer import tflite_bytes
from toolchain.boards import Board, board
from toolchain.boards.memory import MemoryKind
from toolchain.cli import run
from toolchain.deployment.compile import compile_shared
from toolchain.memory.firmware_size import estimated_need, ram_bytes
from toolchain.memory.plan import NEARLY_FREE, Plan
from toolchain.ops.check import check
from toolchain.ops.interpret import interpret
from toolchain.planner import candidates, plan_graph
from toolchain.planning.options import Optimise, PlanOptions
from toolchain.progress import Found
from toolchain.report.latency import predict_latency
from toolchain.report.plan import split_lines

BOARD = "mps2-an386"
NETWORK = check(skip_network())


SIZE = PlanOptions(optimise=Optimise.SIZE)
"""Without quicker kernels in the room that splits make."""


@cache
def planned(options: PlanOptions = SIZE, name: str = BOARD) -> Plan:
    return plan_graph(NETWORK, board(name), options)


@cache
def whole(options: PlanOptions = SIZE) -> Plan:
    return planned(options.unsplit)


def is_whole(plan: Plan) -> bool:
    return [op.name for op in plan.graph.ops] == [op.name for op in whole().graph.ops]


def test_a_plan_takes_them_and_says_what_they_save_and_cost() -> None:
    plan = planned()
    assert plan.arena.size_bytes < whole().arena.size_bytes * 0.7
    assert 0 <= plan.slowdown <= NEARLY_FREE
    assert plan.unsplit_bytes == whole().arena.size_bytes
    line, _ = split_lines(plan)
    for said in (
        f"{plan.arena.size_bytes:,} B instead of {whole().arena.size_bytes:,} B",
        f"{plan.slowdown:.2%} slower than the quickest plan" if plan.slowdown else "as quick as",
        "--no-split",
        "--max-slowdown",
    ):
        assert said in line
    for_time, _ = split_lines(replace(plan, unsplit_bytes=plan.arena.size_bytes))
    assert f"arena {plan.arena.size_bytes:,} B as with operators whole, " in for_time
    assert split_lines(whole()) == ()


def test_splits_make_room_for_quicker_kernels() -> None:
    """Where their scratch would make the arena larger than it is unsplit: plans are smaller, and
    one is at least as quick as any that is unsplit.
    """
    plan, without = planned(PlanOptions()), whole(PlanOptions())
    assert plan.unsplit_bytes == without.arena.size_bytes
    assert plan.arena.size_bytes < without.arena.size_bytes
    base = predict_latency(planned(PlanOptions(max_slowdown=0.0))).total
    assert base <= predict_latency(without).total
    assert predict_latency(plan).total <= (1 + NEARLY_FREE) * base


@pytest.mark.long
def test_for_speed_the_quickest_plan_is_taken_split_or_not() -> None:
    """Blocks may be quicker, as they pad less. A limit on the cost counts from the same base."""
    graph, target = inverted_bottlenecks().graph, board("mps2-an500")
    speed = PlanOptions(optimise=Optimise.SPEED)
    found, without = candidates(graph, target, speed), plan_graph(graph, target, speed.unsplit)
    plan = found.asked()
    assert plan.slowdown == 0
    assert plan.unsplit_bytes == without.arena.size_bytes
    assert predict_latency(plan).total < predict_latency(without).total
    base = found.asking(replace(speed, max_slowdown=0.0)).asked()
    assert predict_latency(plan).total == predict_latency(base).total
    smaller = found.asking(replace(speed, max_slowdown=0.2)).asked()
    assert smaller.arena.size_bytes < plan.arena.size_bytes


def test_the_network_computes_what_it_computed() -> None:
    rng = np.random.default_rng(1)
    tensors = [NETWORK.tensors[name] for name in NETWORK.inputs]
    inputs = [rng.integers(-128, 128, t.shape, np.int8) for t in tensors]
    for ours, theirs in zip(
        interpret(planned().graph, inputs), interpret(NETWORK, inputs), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    "options",
    [
        replace(SIZE, nearly_free=False),
        replace(SIZE, scheduler="hmcos"),
        replace(SIZE, allocator="greedy-size"),
        replace(SIZE, ram_bytes=ram_bytes(whole())),
        PlanOptions(nearly_free=False),
        PlanOptions(scheduler="hmcos"),
    ],
    ids=["refused", "scheduler", "allocator", "ram", "quick", "quick scheduler"],
)
def test_operators_stay_whole_where_refused_or_a_method_is_named(options: PlanOptions) -> None:
    plan = planned(options)
    assert is_whole(plan)
    assert plan.slowdown <= NEARLY_FREE and plan.unsplit_bytes == 0


def test_a_limit_on_the_cost_is_what_is_asked_for() -> None:
    limit = planned().slowdown / 2
    asked = planned(replace(SIZE, max_slowdown=limit))
    assert asked.slowdown <= limit
    assert planned().arena.size_bytes < asked.arena.size_bytes <= whole().arena.size_bytes
    line, _ = split_lines(replace(planned(), slowdown=0.02))
    said = "2.00% slower than the quickest plan as predicted (--no-split keeps operators whole)."
    assert said in line


def test_a_fast_plan_is_no_larger_than_the_unsplit_one() -> None:
    options = replace(SIZE, fast=True)
    assert options.time_limit_seconds == 0.2
    assert options.search_seconds(len(NETWORK.ops)) == 0.2
    plan = planned(options)
    assert planned().arena.size_bytes <= plan.arena.size_bytes < whole().arena.size_bytes
    no_work = planned(replace(SIZE, split_seconds=0))
    assert is_whole(no_work)
    assert "after 0 s" in no_work.search_stopped


def test_nothing_is_split_on_the_host() -> None:
    assert is_whole(planned(name="host"))


@pytest.mark.slow
def test_nothing_is_split_for_a_few_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor looked for where the ends of the network alone take the arena."""
    assert not plan_graph(dense_chain("small", (96, 64, 80)), board(BOARD)).unsplit_bytes
    least = "toolchain.planning.front._LEAST_BYTES"
    saved = whole().arena.size_bytes - planned().arena.size_bytes
    monkeypatch.setattr(least, saved)
    assert not is_whole(plan_graph(NETWORK, board(BOARD), SIZE))
    monkeypatch.setattr(least, saved + 1)
    assert is_whole(plan_graph(NETWORK, board(BOARD), SIZE))


@pytest.mark.slow
def test_blocks_that_flash_does_not_hold_are_left_out() -> None:
    def with_flash(size_bytes: int) -> Board:
        target = board(BOARD)
        memories = [
            replace(m, size_bytes=size_bytes) if m.kind is MemoryKind.FLASH else m
            for m in target.memories
        ]
        return replace(target, memories=tuple(memories))

    unsplit_flash, flash = (estimated_need(p).flash_bytes for p in (whole(), planned()))
    assert unsplit_flash < flash
    for less in (
        plan_graph(NETWORK, with_flash(flash - 1), SIZE),
        plan_graph(NETWORK, board(BOARD), replace(SIZE, flash_bytes=flash - 1)),
    ):
        assert estimated_need(less).flash_bytes < flash
        assert less.arena.size_bytes > planned().arena.size_bytes
    assert is_whole(plan_graph(NETWORK, with_flash(unsplit_flash), SIZE))
    assert is_whole(plan_graph(NETWORK, board(BOARD), replace(SIZE, flash_bytes=unsplit_flash)))
    assert not is_whole(plan_graph(NETWORK, with_flash(flash), SIZE))


@pytest.mark.parametrize("at", ["splitting operators"])
def test_ctrl_c_ends_the_command_as_nobody_asked_for_the_search(at: str) -> None:
    def report(text: str, done: int = 0, total: int = 0, found: Found = ()) -> None:
        if text.startswith(at):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            plan_graph(NETWORK, board(BOARD), report=report)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, report = tmp_path / "skip.tflite", tmp_path / "plan.json"
    model.write_bytes(tflite_bytes(NETWORK))
    fields = {}
    for name, options in {
        "default": [],
        "whole": ["--no-split"],
        "fast": ["--plan", "fast"],
        "front": ["--pareto"],
    }.items():
        assert run(["plan", str(model), "-b", BOARD, *options, "--json", str(report)]) == 0
        fields[name] = json.loads(report.read_text())
        said = " ".join(capsys.readouterr().out.split())
        assert ("--no-split keeps operators whole" in said) == (name != "whole")
    sizes = {name: made["arena_bytes"] for name, made in fields.items()}
    assert sizes["default"] == sizes["front"] < sizes["whole"]
    assert sizes["fast"] < sizes["whole"]
    assert {made["unsplit_arena_bytes"] for made in fields.values()} == {sizes["whole"]}
    unsplit = [row["total"] for row in fields["front"]["pareto"] if not row["splits"]]
    assert min(unsplit) <= fields["whole"]["latency"]["total"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--no-split", "--ram", "96K"], "--no-split keeps every operator whole, --ram splits"),
        (["--no-split", "--max-slowdown", "0%"], "--max-slowdown splits: leave out one"),
        (["--plan", "slow"], "--plan 'slow': it is one of full, fast"),
    ],
)
def test_contradictions_are_refused(
    options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["plan", "absent.tflite", *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
def test_a_model_stays_whole_where_another_needs_as_much_of_a_shared_arena(tmp_path: Path) -> None:
    files = []
    for name, depth in (("wide", 32), ("narrow", 8)):
        file = tmp_path / f"{name}.tflite"
        file.write_bytes(tflite_bytes(check(skip_network(depth=depth))))
        files.append(file)
    made = compile_shared(files, BOARD, tmp_path / "out", library=True)
    wide, narrow = (compiled.plan for compiled in made.models)
    assert wide.unsplit_bytes > wide.arena.size_bytes == made.arena_bytes
    assert not narrow.unsplit_bytes

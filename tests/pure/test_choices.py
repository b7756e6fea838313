"""What `--pareto` lists is what `--choice` takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from toolchain.boards import board
from toolchain.cli import run
from toolchain.cli._builds import PageOptions, growing_build
from toolchain.cost.predicted import predicted_model
from toolchain.errors import InputError
from toolchain.memory.firmware_size import estimated_need
from toolchain.planner import plan_choices, plan_model
from toolchain.planning.options import PlanOptions
from toolchain.progress import silent
from toolchain.report.latency import predict_latency
from toolchain.report.plan import split_lines

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
BOARD = "nucleo-f446re"
OPTIONS = PlanOptions(split_seconds=0.2)


@pytest.mark.slow
def test_each_row_is_the_plan_that_its_number_takes() -> None:
    costs = predicted_model(board(BOARD))
    choices = plan_choices(DIGITS, BOARD, OPTIONS, costs=costs)
    rows = choices.rows()
    assert [row.choice for row in rows] == list(range(1, len(rows) + 1))
    assert len(rows) > 2
    figures = []
    base = rows[0].latency.total
    for row in rows:
        assert row.slowdown == row.latency.total / base - 1
        needed = row.ram_bytes - row.copied_bytes
        figures.append((needed, row.flash_bytes, row.latency.total))
    for row in (rows[0], rows[len(rows) // 2], rows[-1]):
        options = PlanOptions(split_seconds=0.2, choice=row.choice)
        taken = plan_model(DIGITS, BOARD, options, costs=costs)
        need, total = estimated_need(taken), predict_latency(taken, costs).total
        assert (row.ram_bytes, row.flash_bytes) == (need.ram_bytes, need.flash_bytes)
        assert row.copied_bytes == taken.copied.size_bytes
        assert row.latency.total == total
        assert row.slowdown == taken.slowdown
        assert row.lower_bound_bytes == taken.schedule.lower_bound_bytes <= row.peak_bytes
        told = "".join(split_lines(taken)[1:])
        assert all(f"into {split.blocks} block" in told for split in row.splits)
        assert bool(row.splits) == bool(told)
    for one in figures:
        assert not any(
            other != one and all(a <= b for a, b in zip(other, one, strict=True))
            for other in figures
        )
    beyond = PlanOptions(split_seconds=0.2, choice=len(rows) + 1)
    with pytest.raises(InputError, match=rf"choices 1 to {len(rows)}; --pareto lists them"):
        plan_model(DIGITS, BOARD, beyond, costs=costs)


@pytest.mark.slow
def test_the_commands_on_a_page_take_their_points(tmp_path: Path) -> None:
    options = PlanOptions(split_seconds=0.2, flash_bytes=200_000, one_bank=True, max_slowdown=0.02)
    *_, build = growing_build(DIGITS, BOARD, PageOptions(pareto=True), options, silent)
    assert len(build.choices) > 2
    first = build.choices[0].command
    assert "--max-slowdown 2%" in first or "--choice" in first
    assert all("--flash 200000" in c.command and "--one-bank" in c.command for c in build.choices)
    report = tmp_path / "plan.json"
    for choice in (build.choices[0], build.choices[-1]):
        words = choice.command.split()
        assert words[:2] == ["thimble", "compile"]
        assert run(["plan", *words[2:], "--json", str(report)]) == 0
        plan = json.loads(report.read_text())
        assert (plan["ram_bytes"], plan["flash_bytes"]) == (choice.ram, choice.flash)
        assert plan["latency"]["total"] == choice.count


def test_a_choice_and_another_wish_for_splits_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["plan", str(DIGITS), "--choice", "1", "--ram", "96K"]) == 2
    assert "--choice says what is split, and so does --ram" in capsys.readouterr().err

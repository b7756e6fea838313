"""What a new user stumbles over at the command line: completion, percentages, words, widths."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
import typer

from toolchain.boards import board as find_board
from toolchain.boards import boards, chips, core_names
from toolchain.cli import _completion as completion
from toolchain.cli import app, run
from toolchain.cli._commands import COMMANDS, load
from toolchain.cli._console import Plain
from toolchain.cost.predicted import predicted_model
from toolchain.errors import InputError
from toolchain.planner import plan_model
from toolchain.planning.option import per_cent
from toolchain.planning.options import PlanOptions
from toolchain.report.latency import predict_latency
from toolchain.report.operators import operator_table
from toolchain.report.plan import split_lines

DIGITS = Path(__file__).parents[2] / "examples/digits/digits_int8.tflite"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5%", 0.05),
        ("5", 0.05),
        ("0", 0.0),
        ("0%", 0.0),
        ("0.5%", 0.005),
        ("1", 0.01),
        (".5%", 0.005),
    ],
)
def test_a_percentage_is_per_cent_with_and_without_its_sign(text: str, value: float) -> None:
    assert per_cent(text, "--slack") == pytest.approx(value)


@pytest.mark.parametrize("command", [["plan", "--max-slowdown"], ["edgetpu", "plan", "--slack"]])
def test_a_bare_fraction_is_refused_with_both_readings(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    *words, option = command
    assert run([*words, str(DIGITS), option, "0.05"]) == 2
    said = capsys.readouterr().err
    assert f"{option} 5%" in said
    assert f"{option} 0.05%" in said


@pytest.mark.parametrize("text", ["five", "-1", "5%%", "", "nan", "."])
def test_no_percentage(text: str) -> None:
    with pytest.raises(InputError, match="write it as 5%"):
        per_cent(text, "--slack")


def test_boards_and_chips_are_completed() -> None:
    assert completion.boards("") == sorted(boards())
    assert completion.boards("nucleo-f4") == [n for n in sorted(boards()) if n[:9] == "nucleo-f4"]
    assert {*completion.targets("")} == {*boards(), *chips(), *core_names()}


def test_models_are_completed_and_folders_beside_them(tmp_path: Path) -> None:
    for name in ("a.tflite", "b.onnx", "c.txt"):
        (tmp_path / name).touch()
    (tmp_path / "apart" / "deep").mkdir(parents=True)
    assert completion.models(f"{tmp_path}/a") == [f"{tmp_path}/a.tflite", f"{tmp_path}/apart/"]
    assert completion.models(f"{tmp_path}/b") == [f"{tmp_path}/b.onnx"]
    assert completion.models(f"{tmp_path}/apart/") == []
    assert completion.models(f"{tmp_path}/none/") == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_a_board(tmp_path: Path) -> None:
    """With the script as it is printed, in a bash that calls the command as a shell does."""
    command = tmp_path / "thimble"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m toolchain.cli "$@"\n')
    command.chmod(0o755)
    script = (
        f"PATH={tmp_path}:$PATH\n"
        'eval "$(thimble --show-completion bash)"\n'
        "COMP_WORDS=(thimble plan --board nucleo-f4)\nCOMP_CWORD=3\n"
        '_thimble_completion thimble\necho "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.split() == completion.boards("nucleo-f4")


def _usages() -> list[str]:
    found: list[str] = []

    def walk(command: object, name: str) -> None:
        context = typer.Context(command, info_name=name)  # type: ignore[arg-type]
        found.append(command.get_usage(context))  # type: ignore[attr-defined]
        for sub, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{name} {sub}")

    walk(typer.main.get_command(app()), "thimble")
    for name in COMMANDS:
        walk(load(name), f"thimble {name}")
    return found


def test_usage_repeats_no_dots() -> None:
    usages = _usages()
    assert any("[FILE]..." in usage for usage in usages)
    for usage in usages:
        assert "......" not in usage.replace("}", "").replace("]", ""), usage


def test_help_names_no_subcommand_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    run(["cost", "--help"])
    text = capsys.readouterr().out
    listed = re.search(r"in cycles: ([a-z, ]+)\.", " ".join(text.split()))
    assert listed
    assert set(listed[1].split(", ")) <= set(load("cost").commands)


def test_numbers_of_operators_are_whole_at_120_columns() -> None:
    plan = plan_model(DIGITS, "netduinoplus2", PlanOptions().unsplit)
    latency = predict_latency(plan, predicted_model(find_board("netduinoplus2")))
    console = Plain(width=120, record=True, file=StringIO())
    console.print(operator_table(plan, latency))
    text = console.export_text()
    for planned, cost in zip(plan.operators, latency.costs, strict=True):
        assert f" {planned.macs:,} " in text or not planned.macs
        assert f"{cost.count:,} " in text
    for size in plan.step_bytes:
        assert f"{size:,} " in text


@pytest.mark.parametrize("width", [100, 80, 60])
def test_a_narrow_terminal_keeps_operator_cycles_and_share_whole(width: int) -> None:
    plan = plan_model(DIGITS, "netduinoplus2", PlanOptions().unsplit)
    latency = predict_latency(plan, predicted_model(find_board("netduinoplus2")))
    console = Plain(width=width, record=True, file=StringIO())
    console.print(operator_table(plan, latency))
    text = console.export_text()
    heading, *lines = text.splitlines()
    assert {"operator", "cycles", "ms", "share"} <= set(heading.split())
    for cost in latency.costs:
        assert f"{cost.count:,} " in text
    assert all(len(line) <= width for line in lines)
    assert "left out for want of width" in " ".join(text.split())


def test_one_stick_pays(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["edgetpu", "plan", str(DIGITS), "--stages", "auto", "--max-sticks", "2"]) == 0
    text = capsys.readouterr().out
    assert "1 stick pays (*): more shorten" in text
    assert run(["edgetpu", "plan", str(DIGITS), "--stages", "auto", "--max-sticks", "1"]) == 0
    assert "1 stick pays (*): more were not tried." in capsys.readouterr().out


def test_what_is_split_is_named_with_its_blocks_and_cost() -> None:
    plan = plan_model(DIGITS, "netduinoplus2", PlanOptions(ram_bytes=4200))
    cost, split = split_lines(plan)
    assert plan.slowdown > 0 and f"{plan.slowdown:.2%} slower than the quickest plan" in cost
    parts = {op.part_of for op in plan.graph.ops if op.part_of}
    named = set(re.findall(r"\w+_\d+", split))
    assert named and named <= parts
    assert re.search(r"into \d+ blocks", split)
    latency = predict_latency(plan, predicted_model(find_board("netduinoplus2")))
    table, whole = (operator_table(plan, latency, blocks=blocks) for blocks in (False, True))
    names = {op.part_of or op.name for op in plan.graph.ops}
    assert (table.row_count, whole.row_count) == (len(names), len(plan.graph.ops))
    assert table.row_count < whole.row_count
    (count, total) = (list(t.columns[8].cells) for t in (table, whole))
    assert sum(_number(cell) for cell in count) == sum(_number(cell) for cell in total)
    kinds = list(table.columns[2].cells)
    assert any(re.fullmatch(r"\w+ x\d+", str(kind)) for kind in kinds)


def _number(cell: object) -> int:
    return int(re.sub(r"\D", "", str(cell)))

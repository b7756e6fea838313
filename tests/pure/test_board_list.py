"""`thimble boards --for MODEL`: every board, what the model needs of it, cheapest core first."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from toolchain.boards import boards
from toolchain.boards.places import ENVIRONMENT_VARIABLE
from toolchain.cli import run
from toolchain.deployment.fitting import CORES, fits
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"


def test_every_core_has_its_place_in_the_list() -> None:
    assert {b.core.name for b in boards().values() if not b.is_host} <= set(CORES)


@pytest.fixture
def too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a user's board whose chip has 2 KB of RAM."""
    chips = tmp_path / "chips"
    (chips / "families").mkdir(parents=True)
    shutil.copytree(BOARDS / "nucleo-f446re", tmp_path / "tiny")
    for name in ("stm32f446.toml", "families/stm32f4.toml"):
        text = (BOARDS / "chips" / name).read_text()
        (chips / name).write_text(text.replace("size_bytes = 0x0002_0000", "size_bytes = 0x0800"))
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path))
    return "tiny"


@pytest.mark.long
@pytest.mark.slow
def test_the_whole_list(too_small: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "list.json"
    assert run(["boards", "--for", str(DIGITS), "--json", str(file)]) == 0
    shown = capsys.readouterr().out
    told = json.loads(file.read_text())["boards"]
    known = {name: b for name, b in boards().items() if not b.is_host}
    assert {row["name"] for row in told} == set(known)

    held = [row for row in told if row["fits"]]
    assert [row["name"] for row in told[len(held) :]] == [too_small]
    assert told[-1]["why_not"].startswith("digits_int8 cannot fit 2,048 bytes of RAM")
    assert f"{too_small}: {told[-1]['why_not']}"[:60] in shown
    ranks = [
        (CORES.index(row["core"]), known[row["name"]].ram_bytes, known[row["name"]].flash_bytes)
        for row in held
    ]
    assert ranks == sorted(ranks) and len({core for core, *_ in ranks}) > 5

    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines()]
    rows = [row for row in cells if row and row[0]]
    assert [row[0] for row in rows] == [row["name"] for row in held]
    for row, (*_, ram, flash, time) in zip(held, rows, strict=True):
        board = known[row["name"]]
        assert 0 < row["ram_bytes"] <= board.ram_bytes and row["flash_bytes"] > 0
        assert row["flash_bytes"] <= board.flash_bytes
        assert row["milliseconds"] == pytest.approx(1e3 * row["cycles"] / board.clock_hz)
        assert ram == f"{row['ram_bytes'] / 1024:,.1f} KiB"
        assert flash == f"{row['flash_bytes'] / 1024:,.1f} KiB"
        assert time == f"{row['milliseconds']:,.2f} ms"
    assert f"{len(held)} of {len(told)} boards hold digits_int8.tflite" in shown


@pytest.mark.parametrize("name", ["nucleo-g071rb", "nucleo-l476rg", "nucleo-h743zi"])
def test_a_row_says_what_plan_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (fit,) = fits(DIGITS, [boards()[name]], PlanOptions())
    assert run(["plan", str(DIGITS), "--board", name, "--json", "-"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert fit.need is not None
    assert (plan["ram_bytes"], plan["flash_bytes"]) == (fit.need.ram_bytes, fit.need.flash_bytes)
    assert plan["latency"]["total"] == fit.cycles
    assert plan["latency"]["milliseconds"] == pytest.approx(fit.milliseconds)

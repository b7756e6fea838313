"""`thimble boards --for MODEL`: every board, what the model needs of it, cheapest core first."""

from __future__ import annotations

import json
import shutil
from collections.abc import Hashable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.varied import varied
from toolchain.boards import Board, MemoryKind, boards
from toolchain.boards.places import ENVIRONMENT_VARIABLE
from toolchain.cli import run
from toolchain.cost.predicted import predicted_model
from toolchain.deployment.fitting import CORES, fits
from toolchain.errors import DoesNotFitError
from toolchain.planner import Planner, plan_model
from toolchain.planning.front import Candidates
from toolchain.planning.known import planned_alike
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS

DIGITS = BOARDS.parent / "examples" / "digits" / "digits_int8.tflite"
NEED = 4_132 + 6_784
"""Bytes of flash: of a firmware without kernels, and of the weights."""


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


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The boards that were planned."""
    planned, candidates = [], Planner.candidates

    def counting(self: Planner, target: Board, *given: Any, **named: Any) -> Candidates:
        planned.append(target.name)
        return candidates(self, target, *given, **named)

    monkeypatch.setattr(Planner, "candidates", counting)
    return planned


def test_what_a_bound_excludes_is_not_planned(too_small: str, counted: list[str]) -> None:
    """In the words of `plan`, but for the flash that is needed at least."""
    tiny = boards()[too_small]
    flash = tuple(
        replace(bank, size_bytes=4096) if bank.kind is MemoryKind.FLASH else bank
        for bank in boards()["nucleo-f446re"].memories
    )
    small = replace(boards()["nucleo-f446re"], memories=flash)
    no_ram, no_flash = fits(DIGITS, [tiny, small], PlanOptions())
    assert no_flash.why_not == (
        f"digits_int8 does not fit nucleo-f446re: code and weights need at least {NEED:,} bytes: "
        f"{NEED - 4096:,} more than the 4,096 bytes of FLASH on nucleo-f446re."
    )
    with pytest.raises(DoesNotFitError) as error:
        plan_model(DIGITS, too_small, PlanOptions(ram_bytes=tiny.ram_bytes))
    assert no_ram.why_not == str(error.value).splitlines()[0]
    assert counted == [too_small]


@pytest.mark.slow
def test_boards_that_are_alike_are_planned_once(counted: list[str]) -> None:
    """Each fits as it does alone: beside its like, one of equal costs, and one of its core."""
    names = ("nucleo-f446re", "nucleo-f429zi", "nucleo-f411re")
    alone = {name: fits(DIGITS, [boards()[name]], PlanOptions())[0] for name in names}
    counted.clear()
    twin = replace(boards()["nucleo-f446re"], title="the same on another board", usb_ids=())
    together = fits(DIGITS, [*(boards()[name] for name in names), twin], PlanOptions())
    assert sorted(counted) == sorted(names)
    assert len(together) == len(names) + 1
    for fit in together:
        same = alone[fit.board.name]
        assert fit.plan is not None and fit.latency == same.latency and fit.need == same.need
        assert (fit.plan.arena, fit.plan.slowdown) == (same.plan.arena, same.plan.slowdown)


def _alike(target: Board) -> Hashable:
    return planned_alike(target, predicted_model(target).identity)


def _varied_boards(target: Board) -> Iterator[tuple[str, Board]]:
    for at, memories in varied(target.memories, "memories"):
        yield at, replace(target, memories=memories)
    for at, caches in varied(target.caches, "caches"):
        yield at, replace(target, caches=caches)
    for at, core in varied(target.core, "core"):
        yield at, replace(target, chip=replace(target.chip, core=core))
    first, *others = target.memories
    for content in first.holds:
        bank = replace(first, holds=first.holds - {content})
        yield content.value, replace(target, memories=(bank, *others))
    assert target.counter is not None
    yield "counter", replace(target, counter=replace(target.counter, wide=not target.counter.wide))
    yield "no counter", replace(target, counter=None)
    yield "clock", replace(target, clock_hz=target.clock_hz + 1)


def test_boards_that_differ_in_one_field_are_not_alike() -> None:
    target = boards()["nucleo-h743zi"]
    costs = predicted_model(target).identity
    assert planned_alike(target, costs) != planned_alike(target, (costs, "measured"))
    tried = set()
    for what, other in _varied_boards(target):
        assert planned_alike(other, costs) != planned_alike(target, costs), what
        tried.add(what)
    assert len(tried) > 50


def test_boards_that_differ_in_what_no_plan_depends_on_are_alike() -> None:
    one, other = (boards()[name] for name in ("blackpill-f411ce", "nucleo-f411re"))
    assert one.title != other.title and one.uart != other.uart
    assert _alike(one) == _alike(other)


@pytest.mark.parametrize("name", ["nucleo-f446re", "nucleo-h743zi"])
def test_costs_are_told_apart_by_what_they_read(name: str) -> None:
    """Each field of a memory, a cache, and what kernels lack, that changes a count of cycles."""
    stalls = predicted_model(boards()[name]).stalls
    assert stalls is not None
    events = dict(list(stalls.kernels.items())[:1])
    stalls = replace(stalls, kernels=events)
    free = ("region.name", "region.origin", "region.size_bytes", "region.stands_for")
    free = (*free, "cache.name", "cache.memories", "cache.write_back", "timing.write_cycles")
    rounded = ("width_bytes + 1", "burst_cycles + 1", "prefetch the other", "of the other sign")
    told = 0
    for what, other in varied(stalls, "stalls"):
        if what.startswith("stalls.beyond"):
            continue
        if any(field in what for field in free):
            assert other.identity == stalls.identity, what
        elif not what.endswith(rounded):
            assert other.identity != stalls.identity, what
            told += 1
    assert told > 15
    nearer = {replace(stalls, beyond=((size, stalls.code),)).identity for size in (1, 2)}
    assert len({stalls.identity, *nearer}) == 3


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

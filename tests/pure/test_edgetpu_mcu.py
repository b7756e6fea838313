"""A microcontroller as a stage: plans against all there are, and the command line."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from tests.support.edgetpu import all_plans, random_graph
from toolchain.cli import run
from toolchain.cli._edgetpu_mcu import bytes_per_ms
from toolchain.edgetpu.model.figures import EdgeTpuCost, HostCost, HostStage, McuStage, measure
from toolchain.edgetpu.plan.beside import Mcu
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan, plan_with_mcu
from toolchain.errors import InputError, ResultError

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
SMALL = EdgeTpuCost(
    cache_bytes=150,
    macs_per_ms=300,
    stream_bytes_per_ms=60,
    in_bytes_per_ms=50,
    out_bytes_per_ms=30,
    hub_bytes_per_ms=80,
)


@pytest.mark.parametrize("seed", range(30))
def test_a_stage_on_a_microcontroller_is_the_best_there_is(seed: int) -> None:
    """Against every cut, with the board at either end or nowhere, and the host anywhere."""
    rng = random.Random(500 + seed)
    graph = random_graph(rng, 6)
    sticks = rng.choice((0, 1, 2))
    speeds = [rng.uniform(0.1, 2.0) for _ in graph.ops]
    fits = rng.randrange(2, 7)
    host = HostCost(rng.choice((100.0, 1000.0)), 0.5) if rng.random() < 0.4 else None
    place = rng.choice((None, None, "first", "last"))
    link = rng.choice((5.0, 50.0, 500.0))

    def weigh(operators: tuple[int, ...]) -> float:
        return sum(speeds[i] for i in operators) if len(operators) <= fits else inf

    periods = []
    for used in range(sticks + 1):
        for at in {"first": (0,), "last": (-1,), None: (0, -1, None)}[place]:
            for with_host in (False, True) if host is not None else (False,):
                stages = used + (at is not None) + with_host
                free = range(stages)
                mcu_at = None if at is None else at % stages
                for host_at in [k for k in free if k != mcu_at] if with_host else [None]:
                    if at is None and (not sticks or (not with_host and used != sticks)):
                        continue  # without the board, all sticks are used, and there are some
                    for cut in all_plans(graph, stages):
                        board = None
                        if mcu_at is not None:
                            taken = weigh(tuple(i for i, s in enumerate(cut) if s == mcu_at))
                            if taken == inf:
                                continue
                            board = McuStage(mcu_at, taken, link)
                        beside = None
                        if host_at is not None and host is not None:
                            beside = HostStage(host_at, host)
                        totals = measure(
                            [graph], [cut], stages, SMALL, "file", None, beside, board
                        )[1]
                        periods.append(totals.period_ms)
    options = Options("period", "file", SMALL, host=host)
    mcu = Mcu("a board", link, weigh, place)
    if place is None and sticks:
        try:
            plan([graph], sticks, options)
        except (InputError, ResultError):
            return  # no plan to be better than
    if not periods:
        with pytest.raises(ResultError, match="a board"):
            plan_with_mcu(graph, sticks, options, mcu)
        return
    found = plan_with_mcu(graph, sticks, options, mcu)
    assert found.proved_optimal
    assert found.totals.period_ms == pytest.approx(min(periods))
    assert place is None or found.mcu == (0 if place == "first" else found.stages - 1)
    assert found.sticks <= sticks


def test_a_model_with_many_cuts_is_planned_without_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolchain.edgetpu.plan.cuts.MANY_CUTS", 3)
    graph = random_graph(random.Random(5), 10)
    mcu = Mcu("a board", 50.0, lambda operators: 0.1 * len(operators), "first")
    found = plan_with_mcu(graph, 1, Options(cost=SMALL), mcu)
    assert found.mcu == 0
    assert not found.proved_optimal


def test_the_command_plans_the_stage(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["edgetpu", "plan", str(DIGITS), "-n", "2", "--mcu", "netduinoplus2"]
    assert run([*command, "--mcu-stage", "last", "--link", "1MB/s", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["mcu_stage"] == len(told["stages"]) - 1 and told["board"] == "netduinoplus2"
    stage = told["stages"][-1]
    assert stage["time_ms"] > (stage["in_bytes"] + stage["out_bytes"]) / 1000
    assert stage["streamed_bytes"] == 0
    assert run(command) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "The microcontroller takes no stage" in out
    assert run([*command, "--mcu-stage", "first"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Stage 0 is on netduinoplus2" in out and "pass its link" in out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--mcu", "netduinoplus2", "--link", "fast"], "with its unit (B/s, kB/s, MB/s, baud)"),
        (["--mcu", "netduinoplus2", "--link", "0MB/s"], "a speed above 0"),
        (["--link", "1MB/s"], "give --mcu BOARD"),
        (["--mcu-stage", "first"], "give --mcu BOARD"),
        (["--mcu", "netduinoplus2", "--rate", "5"], "give one of them"),
        (["--mcu", "netduinoplus2", "--objective", "params"], "a plan for the period"),
        (["--mcu", "netduinoplus2", "-n", "auto"], "a number of sticks, or 0"),
        (["--mcu", "host"], "no serial line"),
    ],
)
def test_what_is_refused(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["edgetpu", "plan", str(DIGITS), "-n", "1", *more]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_program_in_c_knows_no_microcontroller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["edgetpu", "split", str(DIGITS), "-n", "1", "--mcu", "netduinoplus2"]
    assert run([*command, "--emit", "c", "-o", str(tmp_path / "stages")]) == 2
    assert "without --mcu" in " ".join(capsys.readouterr().err.split())


def test_speeds_of_links() -> None:
    assert bytes_per_ms("1MB/s") == 1000
    assert bytes_per_ms("1.5 kB/s") == 1.5
    assert bytes_per_ms("115200baud") == pytest.approx(11.52)
    for text in ("1", "MB/s", "-1MB/s", "1mb/s"):
        with pytest.raises(InputError):
            bytes_per_ms(text)


def test_a_board_takes_what_its_link_takes() -> None:
    graph = random_graph(random.Random(2), 6)
    stages = next(all_plans(graph, 2))
    slow, fast = (McuStage(0, 1.0, speed) for speed in (1.0, 1e9))
    figures, _ = measure([graph], [stages], 2, SMALL, mcu=slow)
    moved = figures[0][0].in_bytes + figures[0][0].out_bytes
    assert figures[0][0].time_ms == 1.0 + moved
    assert measure([graph], [stages], 2, SMALL, mcu=fast)[0][0][0].time_ms == pytest.approx(1.0)
    assert replace(slow, stage=1).stage_ms(5) == 6.0

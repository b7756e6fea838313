"""Plans for rates that are split and run: bytes of whole models, shared devices, faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.edgetpu import reference_interpreter, run_whole
from toolchain.cli import run as command
from toolchain.edgetpu.model.figures import EdgeTpuCost, HostCost
from toolchain.edgetpu.pipeline import open_rate_runner, read_graphs, split_rates
from toolchain.edgetpu.plan.demand import Demand, Options
from toolchain.edgetpu.plan.rates import plan_rates
from toolchain.edgetpu.run.folder import RATES_MANIFEST, read_rate_folder
from toolchain.edgetpu.run.frames import (
    frames_by_model,
    outputs_of,
    paired,
    requests_of,
)
from toolchain.edgetpu.run.runner import DeviceRunner, StageError
from toolchain.edgetpu.run.simulate import Arrivals, simulate_plan
from toolchain.edgetpu.show.documents import rates_json

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
TWO = ["edgetpu", "split", str(DIGITS), str(DIGITS), "--devices", "2"]
RATES = ["--rate", "digits_int8=400,digits_int8_2=200"]
SLOW_BUS = EdgeTpuCost(cache_bytes=5000, stream_bytes_per_ms=5, hub_bytes_per_ms=40)
"""Weights that do not stay cost so much that models are cut."""


@pytest.mark.parametrize(("sticks", "host"), [(3, None), (2, HostCost(macs_per_ms=2000))])
def test_models_that_are_cut_and_share_devices_compute_the_same_bytes(
    tmp_path: Path, sticks: int, host: HostCost | None
) -> None:
    demand = Demand(("a", "b"), (0.4, 0.2), (None, None))
    graphs = read_graphs([DIGITS, DIGITS])
    options = Options("mean", cost=SLOW_BUS, seconds=5, host=host)
    plan = plan_rates(graphs, sticks, options, demand)
    used = [[place.device for place in path] for path in plan.places]
    assert max(map(len, used)) == 3 and set(used[0]) & set(used[1])
    fields = rates_json(plan, simulate_plan(plan, 500), Arrivals.POISSON, (), None)
    files = split_rates([DIGITS, DIGITS], plan, fields, tmp_path / "out")
    assert len(files) == sum(map(len, used))
    folder = read_rate_folder(tmp_path / "out")
    assert [[visit.device for visit in path] for path in folder.plan.paths] == used
    frames = frames_by_model(folder, (), 12, seed=1)
    requests = requests_of((4000.0, 2000.0), (12, 12), Arrivals.POISSON, 2)
    runner = open_rate_runner(folder)
    found = outputs_of(folder, list(runner.run(paired(requests, frames))))
    whole = reference_interpreter(DIGITS.read_bytes())
    for name, given in zip(("a", "b"), frames, strict=True):
        (key,) = (key for key in found if key.startswith(f"{name}/"))
        assert len(found[key]) == 12
        for frame, got in zip(given, found[key], strict=True):
            (want,) = run_whole(whole, list(frame.values()))
            assert np.array_equal(got, want)
    assert sorted(runner.by_device) == sorted({device for path in used for device in path})


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert command([*TWO, *RATES, "-o", str(out), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["met"] and all((out / file).is_file() for file in told["files"])
    rows = np.random.default_rng(1).integers(-128, 128, (5, 1, 8, 8, 1), np.int8)
    np.save(tmp_path / "x.npy", rows)
    given = ["--input", str(tmp_path / "x.npy"), "--input", str(tmp_path / "x.npy")]
    results = tmp_path / "y.npz"
    assert command(["edgetpu", "run", str(out), *given, "-o", str(results), "--json", "-"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert [model["requests"] for model in ran["models"]] == [5, 5]
    whole = reference_interpreter(DIGITS.read_bytes())
    for values in np.load(results).values():
        for row, got in zip(rows, values, strict=True):
            assert np.array_equal(got, run_whole(whole, [row])[0])
    simulated = ["edgetpu", "simulate", str(out), "--requests", "2000", "--json", "-"]
    assert command(simulated) == 0
    assert len(json.loads(capsys.readouterr().out)["models"]) == 2
    stage = out / told["files"][0]
    stage.write_bytes(stage.read_bytes() + b"\0")
    assert command(["edgetpu", "run", str(out)]) == 2


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--rate", "50000"], 1, "cannot be met, nothing is split"),
        ([*RATES, "--emit", "c"], 2, "are for plans of a period"),
        ([*RATES, "--slack", "5%"], 2, "are for plans of a period"),
        (["--deadline", "5ms"], 2, "give the rates of requests, too"),
    ],
)
def test_what_split_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: list[str], code: int, said: str
) -> None:
    assert command([*TWO, *more, "-o", str(tmp_path / "out")]) == code
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


def test_a_run_refuses_sticks_and_another_number_of_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert command([*TWO, *RATES, "-o", str(out), "--quiet"]) == 0
    assert command(["edgetpu", "run", str(out), "--backend", "delegate"]) == 2
    assert "run on the CPU alone" in " ".join(capsys.readouterr().err.split())
    assert command(["edgetpu", "run", str(out), "--input", str(DIGITS)]) == 2
    assert "1 input files for 2 inputs" in " ".join(capsys.readouterr().err.split())
    content = json.loads((out / RATES_MANIFEST).read_text())
    assert content["files"][0]["name"] == content["models"][0]["name"]


class Doubler:
    """Doubles `t`; fails at `fails`."""

    name = "doubler"
    inputs = outputs = ("t",)
    limit = None

    def __init__(self, fails: int | None = None) -> None:
        self._fails, self._seen = fails, 0

    def invoke(self, tensors: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
        self._seen += 1
        if self._seen == self._fails:
            raise RuntimeError("gone")
        return {"t": 2 * tensors["t"]}, 0.0


def test_a_stage_that_fails_ends_the_run_and_is_named() -> None:
    before = threading.active_count()
    frames = [[{"t": np.array([n])} for n in range(4)]] * 2
    requests = requests_of((1e5, 1e5), (4, 4), Arrivals.PERIODIC, 0)
    runner = DeviceRunner([[Doubler(), Doubler()], [Doubler()]], [[0, 1], [1]], [("t",), ("t",)])
    answers = list(runner.run(paired(requests, frames)))
    for answer in answers:
        number, model = answer.request.number, answer.request.model
        assert answer.outputs[0] == number * (4, 2)[model]
    assert len(answers) == 8
    failing = replace(runner, stages=[[Doubler(), Doubler(3)], [Doubler()]])
    with pytest.raises(StageError, match=r"stage 1 \(doubler\) failed: request 2: gone"):
        list(failing.run(paired(requests, frames)))
    stopped = runner.run(paired(requests_of((1.0,), (4,), Arrivals.PERIODIC, 0), frames))
    stopped.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before

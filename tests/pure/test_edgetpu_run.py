"""Pipelines that run: order, back-pressure, faults, clean stops; simulation; profile; commands."""

from __future__ import annotations

import gc
import json
import random
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolchain.cli import run as command
from toolchain.cli._edgetpu_options import PipelineOptions
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.model.figures import EdgeTpuCost
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.devices import Setting
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.run import backends, coral, runner
from toolchain.edgetpu.run.folder import read_folder
from toolchain.edgetpu.run.profile import profile_of
from toolchain.edgetpu.run.runner import Limit, Pipeline, StageError
from toolchain.edgetpu.run.simulate import Visit, simulate
from toolchain.edgetpu.show.report import hub_words
from toolchain.errors import InputError, MissingToolError
from toolchain.files import replaced_folder

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"


class Adder:
    """Adds one; `on(frame number)` may sleep or raise. Stage 2 also reads stage 0's tensor."""

    def __init__(
        self,
        index: int,
        on: Callable[[int], None] = lambda _: None,
        limit: Limit | None = None,
    ) -> None:
        self.name, self.limit = f"adder {index}", limit
        self.inputs = ("t0",) if index == 0 else (f"t{index}", *(("t1",) if index == 2 else ()))
        self.outputs = (f"t{index + 1}",)
        self._on = on
        self._seen = 0

    def invoke(self, tensors: Mapping[str, Any]) -> tuple[dict[str, Any], float]:
        self._on(self._seen)
        self._seen += 1
        assert all(name in tensors for name in self.inputs)
        return {self.outputs[0]: tensors[self.inputs[0]] + 1}, 0.0


def adders(on: Mapping[int, Callable[[int], None]], stages: int = 4) -> Pipeline:
    made = [Adder(k, on.get(k, lambda _: None)) for k in range(stages)]
    return Pipeline(made, (f"t{stages}",))


def numbers(count: int) -> Iterator[dict[str, Any]]:
    return ({"t0": np.array([n])} for n in range(count))


@pytest.fixture
def no_threads_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


@pytest.mark.usefixtures("no_threads_left")
@pytest.mark.parametrize("slow", [0, 2, 3])
def test_a_slow_stage_keeps_order(slow: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each thread has a clock of its own, so that no stage is charged for what others do."""
    clock = threading.local()

    def now() -> float:
        clock.seconds = getattr(clock, "seconds", 0.0) + 1e-6
        return float(clock.seconds)

    def work(number: int) -> None:
        seconds = 0.002 if number % 3 else 0.0
        time.sleep(seconds)
        clock.seconds += seconds

    monkeypatch.setattr(runner, "time", types.SimpleNamespace(perf_counter=now))
    chain = adders({slow: work})
    assert [int(r[0][0]) for r in chain.run(numbers(60))] == [n + 4 for n in range(60)]
    slowest = max(range(4), key=lambda k: chain.times.stages[k].busy_ms)
    assert slowest == slow
    assert all(stage.frames == 60 for stage in chain.times.stages)
    assert chain.times.period_ms > 0


@pytest.mark.usefixtures("no_threads_left")
@pytest.mark.parametrize("failing", range(4))
@pytest.mark.parametrize("at", [0, 1, 17])
def test_a_failing_stage_is_named(failing: int, at: int) -> None:
    def fail(number: int) -> None:
        if number == at:
            raise RuntimeError("pulled out")

    got = []
    with pytest.raises(StageError, match=f"stage {failing} .*frame {at}: pulled out") as caught:
        for result in adders({failing: fail}).run(numbers(1000)):
            got.append(int(result[0][0]))
    assert caught.value.stage == failing
    assert got == [n + 4 for n in range(len(got))]
    assert len(got) <= at


@pytest.mark.parametrize("of_stick", [True, False])
@pytest.mark.parametrize("hanging", range(3))
def test_a_stage_that_hangs_is_named_and_left_behind(hanging: int, of_stick: bool) -> None:
    """libedgetpu may wait forever for a stick that is gone (google-coral/libedgetpu#30), and a
    stage on this machine may have a loop that never ends.
    """
    before = threading.active_count()
    answer = threading.Event()

    def hang(number: int) -> None:
        if number == 4:
            answer.wait()

    limit = Limit(1.0, of_stick)
    made = [Adder(k, hang if k == hanging else lambda _: None, limit) for k in range(3)]
    chain = Pipeline(made, ("t3",))
    got = []
    with pytest.raises(StageError if of_stick else InputError) as told:
        for result in chain.run(numbers(1000)):
            got.append(int(result[0][0]))
    named = f"stage {hanging} (adder {hanging})"
    silent, slow = (
        f"{named} failed: no answer for 1 s",
        f"frame 4 in {named} did not end within 1 s",
    )
    assert str(told.value).startswith(silent if of_stick else slow)
    assert got == [3, 4, 5, 6]
    assert threading.active_count() == before + 1
    answer.set()
    while threading.active_count() > before:
        time.sleep(0.01)


@pytest.mark.usefixtures("no_threads_left")
@pytest.mark.parametrize("after", [0, 1, 25])
def test_a_stop_in_the_middle(after: int) -> None:
    results = adders({1: lambda _: time.sleep(0.001)}).run(numbers(10_000_000))
    for _ in range(after):
        next(results)
    if after == 0:  # not even started
        results.close()
        return
    results.close()


@pytest.mark.usefixtures("no_threads_left")
def test_frames_are_taken_as_fast_as_results() -> None:
    taken = []

    def frames() -> Iterator[dict[str, Any]]:
        for n in range(10_000):
            taken.append(n)
            yield {"t0": np.array([n])}

    results = adders({}).run(frames())
    next(results)
    time.sleep(0.05)
    assert len(taken) <= 1 + 2 * 4 + 3  # one in each stage and each queue, not all
    results.close()


@pytest.mark.usefixtures("no_threads_left")
def test_no_frames_have_no_results() -> None:
    chain = adders({})
    assert list(chain.run(iter(()))) == []
    assert chain.times.frames == 0


@pytest.mark.usefixtures("no_threads_left")
def test_frames_that_fail_themselves() -> None:
    def frames() -> Iterator[dict[str, Any]]:
        yield {"t0": np.array([0])}
        raise InputError("no more camera")

    with pytest.raises(InputError, match="camera"):
        list(adders({}).run(frames()))


@pytest.mark.slow
@pytest.mark.usefixtures("no_threads_left")
def test_ten_thousand_frames_leave_nothing_behind() -> None:
    chain = adders({}, 3)
    expected = 3
    for number, result in enumerate(chain.run(numbers(10_000))):
        assert int(result[0][0]) == expected + number
        if number == 1000:
            gc.collect()
            early = len(gc.get_objects())
    gc.collect()
    assert len(gc.get_objects()) < early + 2000
    assert chain.times.frames == 10_000


def test_simulation_agrees_with_the_formula() -> None:
    setting = Setting(2, EdgeTpuCost(stream_bytes_per_ms=500, hub_bytes_per_ms=445))
    bus = setting.bus
    even = simulate([Visit(0, 2.0, 0.0), Visit(1, 5.0, 0.0), Visit(2, 1.0, 0.0)], bus)
    assert even.period_ms == pytest.approx(5.0)
    assert even.first_ms == pytest.approx(8.0)
    assert even.stages[0].blocked_ms > 0
    assert even.stages[2].starved_ms > 0
    stream_ms = setting.stream_ms(4450)
    shared = simulate([Visit(0, 0.1, stream_ms), Visit(1, 0.1, stream_ms)], bus)
    assert shared.period_ms == pytest.approx(20.0, rel=0.03)
    assert shared.hub_share > 0.95
    assert hub_words(even) == "no parameters stream over the hub"
    assert hub_words(shared).startswith("parameters stream over the hub 9")
    slow = simulate([Visit(0, 1.0, 0.0), Visit(1, 1.0, 0.0)], bus, arrival_ms=7.0)
    assert slow.period_ms == pytest.approx(7.0)
    assert slow.latency_ms == pytest.approx(2.0)


def test_simulation_of_a_skip_over_a_stage() -> None:
    bus = Setting(3, EdgeTpuCost()).bus
    stages = [
        Visit(0, 1.0, 0.0, feeds=(1, 2)),
        Visit(1, 3.0, 0.0, feeds=(2,)),
        Visit(2, 1.0, 0.0),
    ]
    tight, roomy = simulate(stages, bus, capacity=1), simulate(stages, bus, capacity=4)
    assert tight.frames == roomy.frames == 200
    assert roomy.period_ms == pytest.approx(3.0)
    assert tight.period_ms >= roomy.period_ms - 1e-9


def test_a_stage_without_sources_waits_for_the_frame() -> None:
    """As that of a model's second input: it takes no frame before it has come."""
    stages = [Visit(0, 1.0, 0.0, feeds=(2,)), Visit(1, 2.0, 0.0, feeds=(2,)), Visit(2, 1.0, 0.0)]
    found = simulate(stages, Setting(3, EdgeTpuCost()).bus, frames=20, arrival_ms=10.0)
    begins = [begin for begin, _ in found.stages[1].spans]
    assert begins == [10.0 * number for number in range(20)]
    assert found.latency_ms == pytest.approx(3.0)


@pytest.mark.parametrize("seed", range(12))
def test_simulation_against_the_recursion_of_bounded_queues(seed: int) -> None:
    """A frame begins when the device is free and all that it needs has come; its result is passed
    on when the queues have room: when their stages took the frame that was `capacity` before.
    """
    rng = random.Random(seed)
    count, frames, capacity = rng.randint(2, 5), 40, rng.randint(1, 3)
    arrival_ms = rng.choice((0.0, rng.uniform(1, 9)))
    feeds = [
        (k + 1, *(later for later in range(k + 2, count) if rng.random() < 0.4))
        for k in range(count - 1)
    ]
    feeds.append(())
    times = [rng.uniform(1, 9) for _ in feeds]
    stages = [Visit(k, fixed_ms, 0.0, feeds=feeds[k]) for k, fixed_ms in enumerate(times)]
    found = simulate(stages, Setting(1, EdgeTpuCost()).bus, frames, capacity, arrival_ms)
    begins: list[list[float]] = [[] for _ in stages]
    passed: list[list[float]] = [[] for _ in stages]
    for number in range(frames):
        for k, fixed_ms in enumerate(times):
            ready = [passed[s][number] for s in range(k) if k in feeds[s]]
            begin = max([number * arrival_ms, *passed[k][-1:], *ready])
            begins[k].append(begin)
            room = [begins[later][number - capacity] for later in feeds[k] if number >= capacity]
            passed[k].append(max([begin + fixed_ms, *room]))
    for stage, begun, fixed_ms in zip(found.stages, begins, times, strict=True):
        expected = [(begin, begin + fixed_ms) for begin in begun]
        assert stage.spans == [pytest.approx(span, rel=1e-12) for span in expected]
    half = frames // 2
    period_ms = (passed[-1][-1] - passed[-1][half - 1]) / (frames - half)
    assert found.period_ms == pytest.approx(period_ms, rel=1e-11)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    graph = read_graph(DIGITS)
    pipeline.split([DIGITS], plan([graph], 3, Options("params,comm")), tmp_path / "stages")
    return tmp_path / "stages"


@pytest.mark.usefixtures("no_threads_left")
def test_stages_run_on_the_processor(folder: Path) -> None:
    read = read_folder(folder)
    runner = pipeline.open_runner(read, "cpu")
    frames, total = pipeline.frames_of(read, [], 20)
    given = list(frames)
    results = list(runner.run(iter(given)))
    assert total == len(results) == 20
    whole = pipeline.backends.LiteRTStage  # stages of one stick are the whole model
    graph = read_graph(DIGITS)
    one = pipeline.split([DIGITS], plan([graph], 1, Options()), folder.parent / "whole")
    (stage,) = backends.open_stages(one, backends.Choice("cpu", "asked for"), ("cpu",))
    assert isinstance(stage, whole)
    for frame, result in zip(given, results, strict=True):
        outputs, _ = stage.invoke(frame)
        assert np.array_equal(outputs[one.models[0].outputs[0]], result[0])


def test_several_models_run_together(tmp_path: Path) -> None:
    graph = read_graph(DIGITS)
    found = plan([graph, graph], 2, Options("params"))
    read = pipeline.split([DIGITS, DIGITS], found, tmp_path / "both")
    runner = pipeline.open_runner(read, "cpu")
    frames, _ = pipeline.frames_of(read, [], 3)
    results = list(runner.run(frames))
    assert [len(result) for result in results] == [2, 2, 2]


def test_a_changed_stage_is_refused(folder: Path) -> None:
    file = next(folder.glob("*_stage_1_of_3.tflite"))
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match=rf"changed .*{file.name}.*split the model again"):
        read_folder(folder)
    file.unlink()
    with pytest.raises(InputError, match=rf"incomplete .*{file.name} missing"):
        read_folder(folder)


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"format": "thimble-edgetpu-pipeline"}'])
def test_what_is_no_manifest_is_refused(tmp_path: Path, text: str) -> None:
    with replaced_folder(tmp_path / "stages") as fresh:
        (fresh / "pipeline.json").write_text(text)
    with pytest.raises(InputError, match=r"no pipeline: .*pipeline\.json.*split the model again"):
        read_folder(tmp_path / "stages")


def test_measured_times_are_shared_out(folder: Path) -> None:
    read = read_folder(folder)
    profile = profile_of(read, "cpu", [9.0, 1.0, 1.0])
    stages = read.models[0].stages
    assert sum(profile.times_ms[i] for i in stages[0].operators) == pytest.approx(9.0, rel=0.05)
    graph = read_graph(DIGITS)
    again = plan([graph], 3, Options(cost=profile.cost, times_ms=profile.times_ms))
    assert again.totals.period_ms < 9.5
    with pytest.raises(InputError, match="another number"):
        plan([graph], 3, Options(times_ms=profile.times_ms[1:]))


def test_a_pycoral_of_another_project_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    other = types.ModuleType("pycoral")
    other.__spec__ = types.SimpleNamespace()  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, "pycoral", other)
    with pytest.raises(MissingToolError, match="another project"):
        coral.pycoral_runner()


@pytest.mark.parametrize("stages", ["0", "-1", "two", "1.5", "\u00b2", ""])
def test_stages_that_are_no_number_of_sticks(stages: str) -> None:
    with pytest.raises(InputError, match="a number of sticks, or auto"):
        PipelineOptions(stages).sticks()


def test_a_number_of_sticks() -> None:
    assert PipelineOptions("auto").sticks() is None
    assert PipelineOptions("100").sticks() == 100
    assert PipelineOptions("64", rate="5").sticks() == 64
    with pytest.raises(InputError, match="--stages 65: a number of sticks"):
        PipelineOptions("65", rate="5").sticks()


def test_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    out = str(tmp_path / "out")
    assert command(["edgetpu", "plan", str(DIGITS), "-n", "2", "--json", "-"]) == 0
    planned = json.loads(capsys.readouterr().out)
    fields = "models objective stages max_stage_bytes spill_bytes communication_bytes period_ms"
    assert set(fields.split()) < set(planned)
    assert planned["proved_optimal"] is True
    wanted = {"operators", "param_bytes", "spill_bytes", "in_bytes", "out_bytes"}
    assert all(wanted <= set(stage) for stage in planned["stages"])
    picture = tmp_path / "sticks.svg"
    arguments = ["--max-sticks", "3", "--picture", str(picture)]
    assert command(["edgetpu", "plan", str(DIGITS), "--stages", "auto", *arguments]) == 0
    assert picture.read_text().startswith("<svg")
    assert command(["edgetpu", "split", str(DIGITS), "-n", "3", "-o", out]) == 0
    assert "edgetpu_compiler is not installed" in capsys.readouterr().out.replace("\n", " ")
    assert command(["edgetpu", "run", out, "--frames", "4", "--json", "-"]) == 0
    ran = json.loads(capsys.readouterr().out)
    assert ran["backend"] == "cpu" and ran["frames"] == 4
    assert all({"busy_ms", "queue_ms"} <= set(stage) for stage in ran["stages"])
    timeline = tmp_path / "timeline.svg"
    assert command(["edgetpu", "simulate", out, "--picture", str(timeline), "--json", "-"]) == 0
    simulated = json.loads(capsys.readouterr().out)
    assert simulated["backend"] == "simulation" and len(simulated["stages"]) == 3
    assert timeline.read_text().count("<rect") > 10
    profile = tmp_path / "profile.json"
    assert command(["edgetpu", "profile", out, "-o", str(profile), "--frames", "3"]) == 0
    again = ["edgetpu", "plan", str(DIGITS), "-n", "2", "--profile", str(profile)]
    assert command(again) == 0
    capsys.readouterr()
    kept = ["edgetpu", "plan", str(DIGITS), "-n", "2", "--same-stage-children"]
    assert command([*kept, "--objective", "params,comm"]) == 0
    assert "against children in any stage" in capsys.readouterr().out
    both = ["edgetpu", "plan", str(DIGITS), str(DIGITS), "-n", "2", "--json", "-"]
    capsys.readouterr()
    assert command(both) == 0
    assert len(json.loads(capsys.readouterr().out)["stages"]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "nothing.tflite"],
        ["plan", str(DIGITS), "-n", "99"],
        ["plan", str(DIGITS), "-n", "0"],
        ["plan", str(DIGITS), "-n", "two"],
        ["plan", str(DIGITS), "-n", "2", "--objective", "speed"],
        ["plan", str(DIGITS), "-n", "2", "--balance-by", "weight"],
        ["plan", str(DIGITS), "-n", "2", "--profile", str(DIGITS)],
        ["run", "nowhere"],
        ["simulate", "nowhere"],
    ],
)
def test_bad_commands_end_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["edgetpu", *arguments]) == 2
    told = capsys.readouterr().err
    assert told.count("error:") == 1
    assert "Traceback" not in told


def test_a_stick_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["edgetpu", "run", str(folder), "--backend", "delegate"]) == 2
    assert command(["edgetpu", "run", str(folder), "--backend", "tpu"]) == 2
    assert command(["edgetpu", "run", str(folder), "--device", "usb:0"]) == 2
    assert "one for each stage" in capsys.readouterr().err

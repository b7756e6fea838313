"""The pycoral back end on pycoral's own Python, over its C++ as read from libcoral's source.

The stages run on LiteRT through an external delegate compiled here. Nothing ran on hardware.
"""

from __future__ import annotations

import contextlib
import gc
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import pycoral_tree, pywrap_coral
from tests.support.sticks import compile_delegate
from toolchain.cli import run as command
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.run import coral
from toolchain.edgetpu.run.folder import PipelineFolder
from toolchain.edgetpu.run.runner import StageError
from toolchain.errors import InputError, MissingToolError, ResultError

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
STICKS = ("usb:0", "usb:1", "usb:2")
RELEASES = (pycoral_tree.FROGFISH, pycoral_tree.GROUPER, pycoral_tree.NEWEST)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_delegate(tmp_path_factory.mktemp("library"))


def install(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch, commit: str) -> None:
    """pycoral and three sticks, for this process and its children."""
    tree = pycoral_tree.write_tree(tmp_path / "tree", commit)
    monkeypatch.setenv("THIMBLE_STICKS_LIBRARY", str(library))
    monkeypatch.setenv("THIMBLE_STICKS", " ".join(STICKS))
    for name in [n for n in sys.modules if n.split(".")[0] in ("pycoral", "tflite_runtime")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tree))
    pywrap_coral.failed.clear()
    pywrap_coral.live_buffers.clear()


@pytest.fixture(params=RELEASES)
def release(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    install(tmp_path, library, monkeypatch, request.param)
    yield request.param
    forget_packages()


@pytest.fixture
def newest(tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path, library, monkeypatch, pycoral_tree.NEWEST)
    yield
    forget_packages()


def forget_packages() -> None:
    for name in [n for n in sys.modules if n.split(".")[0] in ("pycoral", "tflite_runtime")]:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> PipelineFolder:
    """Three stages; what the compiler would have written are the plain stages here."""
    made = pipeline.split(
        [DIGITS], plan([read_graph(DIGITS)], 3, Options("period")), tmp_path / "stages"
    )
    for stage in made.models[0].stages:
        shutil.copy(made.path / stage.file, made.path / stage.compiled_file)
    return made


@pytest.fixture
def no_threads_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def frames_of(folder: PipelineFolder, count: int) -> list[Mapping[str, Any]]:
    return list(pipeline.frames_of(folder, [], count)[0])


def expected(folder: PipelineFolder, frames: list[Mapping[str, Any]]) -> list[Any]:
    runner = pipeline.open_runner(folder, "cpu")
    return [result[0] for result in runner.run(iter(frames))]


@pytest.mark.usefixtures("no_threads_left")
def test_real_frames_byte_for_byte(folder: PipelineFolder, release: str) -> None:
    chain = coral.PycoralPipeline(folder, STICKS)
    frames = frames_of(folder, 40)
    wanted = expected(folder, frames)
    for _ in range(2):  # a runner that was ended is not used again
        got = [result[0] for result in chain.run(iter(frames))]
        assert len(got) == len(wanted)
        for ours, theirs in zip(got, wanted, strict=True):
            assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    assert not pywrap_coral.failed
    assert not pywrap_coral.live_buffers


@pytest.mark.usefixtures("no_threads_left")
@pytest.mark.parametrize(("stages", "count"), [(1, 1), (1, 20), (2, 1), (3, 0)])
def test_few_stages_and_few_frames(tmp_path: Path, release: str, stages: int, count: int) -> None:
    made = pipeline.split(
        [DIGITS], plan([read_graph(DIGITS)], stages, Options("period")), tmp_path / "few"
    )
    for stage in made.models[0].stages:
        shutil.copy(made.path / stage.file, made.path / stage.compiled_file)
    frames = frames_of(made, count)
    got = list(coral.PycoralPipeline(made, STICKS[:stages]).run(iter(frames)))
    wanted = expected(made, frames)
    assert len(got) == len(wanted) == count
    assert all(np.array_equal(g[0], w) for g, w in zip(got, wanted, strict=True))
    assert not pywrap_coral.failed
    assert not pywrap_coral.live_buffers


@pytest.mark.usefixtures("no_threads_left", "newest")
def test_an_array_that_is_not_in_one_piece(folder: PipelineFolder) -> None:
    (name,) = folder.models[0].inputs
    (frame,) = frames_of(folder, 1)
    turned = np.asfortranarray(np.repeat(frame[name], 2, axis=2))[:, :, ::2]
    assert not turned.flags.c_contiguous
    (got,) = coral.PycoralPipeline(folder, STICKS).run(iter([{name: turned}]))
    assert np.array_equal(got[0], expected(folder, [frame])[0])


@pytest.mark.usefixtures("no_threads_left")
def test_a_stop_in_the_middle(folder: PipelineFolder, release: str) -> None:
    taken = 0

    def endless() -> Iterator[Mapping[str, Any]]:
        nonlocal taken
        frame = frames_of(folder, 1)[0]
        while True:
            taken += 1
            yield frame

    results = coral.PycoralPipeline(folder, STICKS).run(endless())
    for _ in range(3):
        next(results)
    time.sleep(0.2)
    assert taken <= 3 + 2 * 3 + 1  # three taken, and what the runner holds with queues of one
    results.close()  # type: ignore[attr-defined]
    assert not pywrap_coral.failed
    assert not pywrap_coral.live_buffers


@pytest.mark.usefixtures("no_threads_left", "newest")
def test_nothing_is_printed_and_nothing_hangs_behind(
    folder: PipelineFolder, capfd: pytest.CaptureFixture[str]
) -> None:
    results = coral.PycoralPipeline(folder, STICKS).run(iter(frames_of(folder, 3)))
    assert len(list(results)) == 3
    gc.collect()  # pycoral's __del__ pushes, pops and prints
    assert capfd.readouterr().out == ""


@pytest.mark.usefixtures("no_threads_left", "newest")
@pytest.mark.parametrize("at", [0, 5])
def test_the_first_stick_goes_away(
    folder: PipelineFolder, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setenv("THIMBLE_STICKS", f"usb:0@{at} usb:1 usb:2")
    got = []
    with pytest.raises(StageError, match=r"stage 0 \(usb:0\) failed: .*usb:0 is gone") as told:
        for result in coral.PycoralPipeline(folder, STICKS).run(iter(frames_of(folder, 100))):
            got.append(result)
    assert told.value.stage == 0
    assert len(got) <= at
    assert not pywrap_coral.failed


@pytest.mark.usefixtures("newest")
def test_a_later_stick_goes_away_and_libcoral_hangs(
    folder: PipelineFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ShutdownPipeline joins stage 0, which waits for room that stage 1 no longer makes (250).

    On a busy machine stage 0 may not have filled that room yet, and the failure comes through.
    """
    monkeypatch.setenv("THIMBLE_STICKS", "usb:0 usb:1@5 usb:2")
    chain = coral.PycoralPipeline(folder, STICKS, silence_s=1.0)
    told = r"no result for 1 s.*--backend delegate|usb:1 is gone"
    with pytest.raises((ResultError, StageError), match=told):
        list(chain.run(iter(frames_of(folder, 100))))


@pytest.mark.usefixtures("no_threads_left", "newest")
def test_a_later_stick_goes_away_at_the_last_frame(
    folder: PipelineFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THIMBLE_STICKS", "usb:0 usb:1@5 usb:2")
    chain = coral.PycoralPipeline(folder, STICKS)
    with pytest.raises(StageError, match=r"stage 1 \(usb:1\) failed: .*usb:1 is gone"):
        list(chain.run(iter(frames_of(folder, 6))))


@pytest.mark.usefixtures("no_threads_left")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda name, array: {name: array.astype(np.float32)}, "takes int8"),
        (lambda name, array: {name: array[0]}, r"takes int8 \[1, 8, 8, 1\]"),
        (lambda name, array: {"other": array}, "has no input 'other'"),
        (lambda name, array: {name: array, "other": array}, "has no input 'other'"),
        (lambda name, array: {}, "lacks input"),
    ],
)
def test_a_frame_that_does_not_fit(
    folder: PipelineFolder,
    release: str,
    change: Callable[[str, Any], Mapping[str, Any]],
    reason: str,
) -> None:
    (name,) = folder.models[0].inputs
    good = frames_of(folder, 3)
    chain = coral.PycoralPipeline(folder, STICKS)
    with pytest.raises(InputError, match=reason):
        list(chain.run(iter([*good, change(name, good[0][name])])))
    assert not pywrap_coral.failed


@pytest.mark.usefixtures("no_threads_left")
def test_frames_that_fail_themselves(folder: PipelineFolder, release: str) -> None:
    def frames() -> Iterator[Mapping[str, Any]]:
        yield from frames_of(folder, 2)
        raise RuntimeError("no more camera")

    with pytest.raises(RuntimeError, match="no more camera"):
        list(coral.PycoralPipeline(folder, STICKS).run(frames()))


@pytest.mark.usefixtures("newest")
def test_a_runner_that_is_used_as_ours_is_not(folder: PipelineFolder) -> None:
    """What the stand-in ends the process for: keeps the tests above from passing by accident."""
    from pycoral.pipeline.pipelined_model_runner import (  # type: ignore[import-not-found]
        PipelinedModelRunner,
    )
    from pycoral.utils.edgetpu import make_interpreter  # type: ignore[import-not-found]

    stages = folder.models[0].stages
    made = [make_interpreter(str(folder.path / s.compiled_file), "usb:0") for s in stages]
    for interpreter in made:
        interpreter.allocate_tensors()
    with pytest.raises(ValueError, match="can not get its input tensors"):
        PipelinedModelRunner(made[::-1])
    with pytest.raises(ValueError, match="At least one"):
        PipelinedModelRunner([])
    runner = PipelinedModelRunner(made)
    (name,) = folder.models[0].inputs
    frame = frames_of(folder, 1)[0][name]
    with pytest.raises(AttributeError):  # 1.0's list
        runner.push([frame])
    with pytest.raises(ValueError, match="numpy array of type"):
        runner.push({name: frame.astype(np.float64)})
    with pytest.raises(ValueError, match="Expected input of length 1"):
        runner.push({name: frame, "other": frame})
    with pytest.raises(KeyError):
        runner.push({"other": frame})
    assert runner.push({name: frame}) is None
    assert set(runner.pop()) == set(folder.models[0].outputs)
    runner.push({})
    with pytest.raises(RuntimeError, match="turned off before"):
        runner.push({name: frame})
    assert runner.pop() is None
    runner._runner = None


class Slow:
    """An interpreter of one tensor that adds one in a millisecond; fails once, after `ready`."""

    def __init__(
        self, source: str, target: str, failing: int | None, ready: Callable[[], bool]
    ) -> None:
        self._details = [{"index": 0, "shape": (4,), "dtype": np.uint8}] * 2
        self._names, self._left, self._ready = (source, target), failing, ready
        self._value = np.zeros(4, np.uint8)

    def get_input_details(self) -> list[dict[str, Any]]:
        return [{**self._details[0], "name": self._names[0]}]

    def get_output_details(self) -> list[dict[str, Any]]:
        return [{**self._details[1], "name": self._names[1]}]

    def set_tensor(self, _: int, value: Any) -> None:
        self._value = value + np.uint8(1)

    def invoke(self) -> None:
        time.sleep(0.001)
        if self._left == 0:
            while not self._ready():
                time.sleep(0.001)
            raise RuntimeError("gone")
        self._left = None if self._left is None else self._left - 1

    def get_tensor(self, _: int) -> Any:
        return self._value


@pytest.mark.parametrize(
    ("stage", "at", "frames", "most", "end"),
    [
        (None, 0, 40, None, "None after 40"),
        (None, 0, 40, 1, "None after 40"),
        (0, 5, 100, None, "Segment 0 runner error: gone"),
        (0, 5, 100, 1, "hangs"),
        (1, 5, 6, None, "Segment 1 runner error: gone"),
        (1, 5, 7, None, "Segment 1 runner error: gone"),
        (1, 5, 8, None, "hangs"),
        (1, 5, 100, None, "hangs"),
        (2, 5, 100, None, "hangs"),
    ],
)
def test_the_stand_in_ends_as_libcoral_did(
    stage: int | None, at: int, frames: int, most: int | None, end: str
) -> None:
    """Ends that libcoral's own C++ gave, compiled over interpreters that add one (6589d0b).

    There all frames were pushed, or as many as had room, before the stage failed: here it waits.
    """
    names, begun, fed = ("x", "y", "z", "w"), 0, False

    def ready() -> bool:
        """Whether no more frames can be pushed: the next is waiting for room, or there is none."""
        return fed or (begun > at + 2 and runner._mutex._readers > 0)

    made = [Slow(names[k], names[k + 1], at if k == stage else None, ready) for k in range(3)]
    for number, interpreter in enumerate(made):
        pywrap_coral.interpreters[-number] = interpreter
    pywrap_coral.failed.clear()
    runner = pywrap_coral.PipelinedModelRunnerWrapper([-number for number in range(3)])
    if most is not None:
        runner.SetInputQueueSize(most)
        runner.SetOutputQueueSize(most)
    ends: list[str] = []

    def feed() -> None:
        nonlocal begun, fed
        with contextlib.suppress(RuntimeError):
            for number in range(frames):
                begun += 1
                runner.Push({"x": np.full(4, number, np.uint8)})
            fed = True
            runner.Push({})

    def drain() -> None:
        count = 0
        try:
            while runner.Pop() is not None:
                count += 1
            ends.append(f"None after {count}")
        except RuntimeError as error:
            ends.append(str(error))

    threads = [threading.Thread(target=run, daemon=True) for run in (feed, drain)]
    for thread in threads:
        thread.start()
    threads[1].join(timeout=0.7 if end == "hangs" else None)
    assert (ends or ["hangs"]) == [end]
    assert not pywrap_coral.failed


def test_what_pycoral_cannot_run(folder: PipelineFolder) -> None:
    coral.check_fits(folder, {"scores": np.int8})
    with pytest.raises(MissingToolError, match="8-bit outputs only, 'scores' is float32"):
        coral.check_fits(folder, {"scores": np.float32})
    with pytest.raises(MissingToolError, match="ASCII"):
        coral.check_fits(folder, {"Ausgänge": np.int8})


@pytest.mark.usefixtures("newest")
def test_wide_outputs_break_pycoral_itself(tmp_path: Path) -> None:
    """Why `check_fits` refuses them: coral_wrapper.cc:514 counts bytes as elements."""
    buffer = pywrap_coral._Buffer(np.arange(3, dtype=np.float32).tobytes(), "caller")
    returned = pywrap_coral._returned(pywrap_coral._Tensor(buffer, 0), np.float32)
    with pytest.raises(ValueError, match="reshape"):
        returned.reshape((1, 3))


@pytest.mark.usefixtures("newest")
def test_a_stick_that_is_not_there(folder: PipelineFolder) -> None:
    with pytest.raises(MissingToolError, match=r"answers as usb:7 \(no stick at usb:7\)"):
        coral.PycoralPipeline(folder, ("usb:0", "usb:1", "usb:7"))
    with pytest.raises(MissingToolError, match=r"answers as usb:7 \(no stick at usb:7\)"):
        pipeline.open_runner(folder, "pycoral", "usb:7,usb:1,usb:2")


@pytest.mark.usefixtures("newest")
def test_a_compiled_stage_that_is_none(folder: PipelineFolder) -> None:
    spoilt = folder.path / folder.models[0].stages[1].compiled_file
    spoilt.write_bytes(b"TFL3 it is not")
    with pytest.raises(InputError, match="cannot be prepared on usb:1"):
        coral.PycoralPipeline(folder, STICKS)
    shutil.copy(folder.path / folder.models[0].stages[2].file, spoilt)
    with pytest.raises(InputError, match=r"do not fit together .*compile them again"):
        list(coral.PycoralPipeline(folder, STICKS).run(iter(frames_of(folder, 1))))


@pytest.mark.usefixtures("newest")
def test_a_crash_of_pycoral_ends_in_a_sentence(
    folder: PipelineFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THIMBLE_STICKS", "usb:0# usb:1 usb:2")
    assert command(["edgetpu", "run", str(folder.path), "--backend", "pycoral"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "pycoral, tflite_runtime 2.5.0 and libedgetpu.so.1" in told
    assert "the trial was to run a stage, and it died of SIGSEGV" in told


@pytest.mark.usefixtures("newest", "no_threads_left")
def test_the_command(folder: PipelineFolder, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["edgetpu", "run", str(folder.path), "--frames", "5", "--json", "-"]
    assert command([*arguments, "--backend", "pycoral"]) == 0
    ran = json.loads(capfd.readouterr().out)
    assert ran["backend"] == "pycoral" and ran["frames"] == 5

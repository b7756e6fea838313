"""The delegate back end through LiteRT, on an external delegate that is compiled here.

It has libedgetpu's interface (`tests/support/sticks/delegate.c`); where a clone of pycoral is at
hand, Google's own libedgetpu is loaded too. Nothing ran on hardware.
"""

from __future__ import annotations

import ctypes.util
import json
import platform
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import interpreter

from tests.support import pycoral_tree
from tests.support.sticks import compile_delegate
from toolchain.cli import run as command
from toolchain.edgetpu import pipeline
from toolchain.edgetpu.model.reading import read_graph
from toolchain.edgetpu.plan.demand import Options
from toolchain.edgetpu.plan.planner import plan
from toolchain.edgetpu.run import backends, interpreters
from toolchain.edgetpu.run.folder import PipelineFolder
from toolchain.edgetpu.run.runner import StageError
from toolchain.errors import MissingToolError

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits_int8.tflite"
LITERT = interpreters.KINDS[1]
RUNTIME = interpreters.KINDS[0]
TENSORFLOW = interpreters.KINDS[2]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_delegate(tmp_path_factory.mktemp("library"))


@pytest.fixture
def sticks(library: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(interpreters, "library", lambda: str(library))
    monkeypatch.setenv("THIMBLE_STICKS", "usb:0 usb:1")
    return monkeypatch


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> PipelineFolder:
    """Two stages; what the compiler would have written are the plain stages here."""
    made = pipeline.split(
        [DIGITS], plan([read_graph(DIGITS)], 2, Options("period")), tmp_path_factory.mktemp("out")
    )
    for stage in made.models[0].stages:
        shutil.copy(made.path / stage.file, made.path / stage.compiled_file)
    return made


def run(folder: PipelineFolder, count: int) -> Iterator[tuple[Any, ...]]:
    runner = pipeline.open_runner(folder, "delegate")
    frames, _ = pipeline.frames_of(folder, [], count)
    return runner.run(frames)


@pytest.mark.usefixtures("sticks")
def test_stages_run_on_their_sticks(folder: PipelineFolder) -> None:
    """The pipeline gives what the same interpreters give one after another."""
    got = list(run(folder, 12))
    choice = backends.Choice("delegate", "asked for")
    first, second = backends.open_stages(folder, choice, ("usb:0", "usb:1"))
    frames, _ = pipeline.frames_of(folder, [], 12)
    for frame, result in zip(frames, got, strict=True):
        between, _ = first.invoke(frame)
        outputs, _ = second.invoke(between)
        assert np.array_equal(outputs[folder.models[0].outputs[0]], result[0])


@pytest.mark.usefixtures("sticks")
def test_the_choice_names_its_interpreter(folder: PipelineFolder) -> None:
    choice = backends.choose(folder, "delegate", ("usb:0", "usb:1"))
    assert choice.name == "delegate"
    assert choice.module in [kind.module for kind in interpreters.KINDS]
    assert "found, with " in choice.why


def test_a_device_that_the_library_does_not_know(
    folder: PipelineFolder, sticks: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MissingToolError, match=r"answers as usb:7 \(no stick at usb:7\)"):
        pipeline.open_runner(folder, "delegate", "usb:7,usb:0")
    with pytest.raises(MissingToolError, match=r"answers as usb:7 \(no stick at usb:7\)"):
        pipeline.open_runner(folder, "delegate", "usb:0,usb:7")
    sticks.setenv("THIMBLE_STICKS_SILENT", "1")  # libedgetpu reports nothing, and returns NULL
    with pytest.raises(MissingToolError, match="answers as usb:7: is it plugged in"):
        pipeline.open_runner(folder, "delegate", "usb:7,usb:0")


@pytest.mark.parametrize("awake", ["", "usb:0", "usb:1", "usb:0 usb:1"])
def test_each_stage_has_a_stick_of_its_own(
    folder: PipelineFolder, sticks: pytest.MonkeyPatch, tmp_path: Path, awake: str
) -> None:
    """Sticks fresh from the box are counted anew when one of them gets its firmware."""
    sticks.setenv("THIMBLE_STICKS_STATE", str(tmp_path))

    def awaken_only_these() -> None:
        (tmp_path / "opened").unlink(missing_ok=True)
        for name in ("usb:0", "usb:1"):
            (tmp_path / name).mkdir(exist_ok=True)
            vendor = "18d1" if name in awake.split() else "1a6e"
            (tmp_path / name / "idVendor").write_text(f"{vendor}\n")

    awaken_only_these()
    choice = backends.Choice("delegate", "asked for")
    backends.open_stages(folder, choice, ("usb:0", "usb:1"))
    without = (tmp_path / "opened").read_text().split()
    awaken_only_these()
    assert len(list(run(folder, 3))) == 3
    assert (tmp_path / "opened").read_text().split()[-2:] == ["usb:0", "usb:1"]
    assert interpreters.software().sticks == tuple(
        f"usb {tmp_path / n}" for n in ("usb:0", "usb:1")
    )
    if not awake:
        assert without == ["usb:0", "usb:0"]  # what `wake` is for


@pytest.mark.parametrize("at", [1, 5])
def test_a_stick_that_goes_away(
    folder: PipelineFolder, sticks: pytest.MonkeyPatch, at: int
) -> None:
    sticks.setenv("THIMBLE_STICKS", f"usb:0 usb:1@{at}")
    got = []
    with pytest.raises(StageError, match=r"stage 1 .*usb:1 does not answer .*unplugged") as told:
        for result in run(folder, 50):
            got.append(result)
    assert told.value.stage == 1
    assert len(got) <= at


@pytest.mark.parametrize(("behaviour", "step"), [("!", "open the stick"), ("#", "run a stage")])
def test_a_library_that_crashes_ends_in_a_sentence(
    folder: PipelineFolder,
    sticks: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    behaviour: str,
    step: str,
) -> None:
    sticks.setenv("THIMBLE_STICKS", f"usb:0{behaviour} usb:1")
    assert command(["edgetpu", "run", str(folder.path), "--backend", "delegate"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert f"ai_edge_litert {LITERT.version}: the trial was to {step}, and it died of SIG" in told
    assert "Known to work: libedgetpu 15.0 with tflite 2.5.0" in told
    assert command(["edgetpu", "run", str(folder.path), "--frames", "2", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["backend"] == "cpu"


def test_headers_of_another_tensorflow(
    folder: PipelineFolder, sticks: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Google's libedgetpu 16.0 hands over TfLiteRegistration as 2.5 had it, without its end."""
    older = compile_delegate(tmp_path, "-DHEADERS_OF_2_5")
    sticks.setattr(interpreters, "library", lambda: str(older))
    with pytest.raises(MissingToolError, match=r"ai_edge_litert .* it died of SIG"):
        pipeline.open_runner(folder, "delegate")


def test_the_next_interpreter_is_taken(
    folder: PipelineFolder, sticks: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "tflite_runtime"
    package.mkdir()
    (package / "__init__.py").write_text('__version__ = "2.14.0"\n')
    (package / "interpreter.py").write_text(
        "import os, signal\n"
        "from ai_edge_litert.interpreter import Interpreter\n"
        "def load_delegate(*_):\n    os.kill(os.getpid(), signal.SIGSEGV)\n"
    )
    sticks.syspath_prepend(str(tmp_path))
    assert RUNTIME.version
    choice = backends.choose(folder, "delegate", ("usb:0", "usb:1"))
    assert choice.module == LITERT.module


@pytest.mark.slow
def test_no_second_interpreter_is_loaded_beside_the_one_that_runs(folder: PipelineFolder) -> None:
    """Two may not bear each other (google-ai-edge/LiteRT#8272): what a frame must bring is read
    from the file, and is what LiteRT says of it."""
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from toolchain.edgetpu import pipeline\n"
        "from toolchain.edgetpu.run import backends\n"
        "from toolchain.edgetpu.run.folder import read_folder\n"
        "folder = read_folder(Path(sys.argv[1]))\n"
        "frames, _ = pipeline.frames_of(folder, [], 1)\n"
        "next(frames), backends.output_types(folder)\n"
        "print([name for name in sys.modules if name.endswith('interpreter_wrapper')])\n"
    )
    command_line = [sys.executable, "-c", script, str(folder.path)]
    done = subprocess.run(command_line, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    first, last = folder.models[0].stages[0], folder.models[0].stages[-1]
    litert = interpreter.Interpreter(model_path=str(folder.path / first.file))
    (told,) = litert.get_input_details()
    (_, shape, dtype) = backends.input_details(folder)[0]
    assert (shape, dtype) == (tuple(told["shape"]), told["dtype"])
    litert = interpreter.Interpreter(model_path=str(folder.path / last.file))
    (told,) = litert.get_output_details()
    assert list(backends.output_types(folder).values()) == [told["dtype"]]


def test_tensorflow_is_laid_out_as_its_wheel(
    folder: PipelineFolder, sticks: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`tensorflow/lite/__init__.py` is empty and shadows the public `tf.lite`, whose folder only
    comes after it in `__path__` (tensorflow/api_template.__init__.py)."""
    package = tmp_path / "tensorflow"
    public = package / "_api" / "v2" / "lite"
    inner = package / "lite" / "python"
    for place in (public, inner):
        place.mkdir(parents=True)
    (package / "__init__.py").write_text(
        '__version__ = "2.19.0"\n'
        "import pathlib\n"
        '__path__.append(str(pathlib.Path(__file__).parent / "_api" / "v2"))\n'
    )
    (public / "__init__.py").write_text("from ai_edge_litert.interpreter import Interpreter\n")
    for place in (inner.parent, inner):
        (place / "__init__.py").touch()
    (inner / "interpreter.py").write_text("from ai_edge_litert.interpreter import *\n")
    for name in [n for n in sys.modules if n.split(".")[0] == "tensorflow"]:
        sticks.delitem(sys.modules, name)
    sticks.syspath_prepend(str(tmp_path))
    sticks.setattr(interpreters, "KINDS", (TENSORFLOW,))
    choice = backends.choose(folder, "delegate", ("usb:0", "usb:1"))
    assert choice.why == "found, with TensorFlow 2.19.0"
    assert len(list(run(folder, 3))) == 3
    for name in [n for n in sys.modules if n.split(".")[0] == "tensorflow"]:
        sticks.delitem(sys.modules, name)


def test_without_the_library(folder: PipelineFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreters, "library", lambda: "libnothing-edgetpu.so.1")
    with pytest.raises(MissingToolError, match=r"libnothing-edgetpu.so.1 cannot be loaded .*get "):
        pipeline.open_runner(folder, "delegate")


@pytest.mark.parametrize(
    ("libedgetpu", "tflite", "told"),
    [
        ("16.0", "2.5.0.post1", "known to work"),
        ("16.0", "2.11.1", "known to work"),
        ("16.0", "2.14.0", "known to crash"),
        ("15.0", "2.5.0", "known to work"),
        ("15.0", "2.14.0", "not known"),
        ("16.0tf2.13.1-2", "2.14.0", "known to work"),
        ("16.0tf2.17.1-1", "2.17.1", "known to work"),
        ("16.0TF2.17.1-1", "2.14.0", "not known"),
        ("", "2.14.0", "not known"),
    ],
)
def test_what_is_known_of_versions(libedgetpu: str, tflite: str, told: str) -> None:
    installed = types.SimpleNamespace(name=RUNTIME.name, version=tflite)
    assert interpreters.fits(libedgetpu, installed) == told
    assert interpreters.fits(libedgetpu, LITERT) == "not known"


@pytest.mark.usefixtures("sticks")
def test_doctor_tells_the_combination(capsys: pytest.CaptureFixture[str]) -> None:
    command(["doctor", "--json", "-"])
    told = json.loads(capsys.readouterr().out)
    (row,) = [f for f in told["findings"] if f["what"] == "Edge TPU"]
    assert "runtime 14" in row["found"] and f"ai_edge_litert {LITERT.version}" in row["found"]
    assert {"who": "Google", "libedgetpu": "16.0"}.items() <= told["edge_tpu_known"][1].items()
    command(["doctor"])
    assert "known to work together" in capsys.readouterr().out


@pytest.fixture
def googles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        pytest.skip("Google's libedgetpu in pycoral's repository is for x86-64 Linux here")
    if ctypes.util.find_library("usb-1.0") is None:
        pytest.skip("libusb-1.0, which libedgetpu needs, is not installed")
    place = tmp_path / "libedgetpu.so.1"
    place.write_bytes(pycoral_tree.source_of("libedgetpu_bin/throttled/k8/libedgetpu.so.1.0"))
    monkeypatch.setattr(interpreters, "library", lambda: str(place))


@pytest.mark.usefixtures("googles")
def test_googles_library_without_a_stick(folder: PipelineFolder) -> None:
    found = interpreters.software()
    assert found.runtime == "runtime 14"
    if found.sticks:
        pytest.skip(f"there are sticks: {', '.join(found.sticks)}")
    assert "none answers" in found.text
    with pytest.raises(MissingToolError, match="no Edge TPU answers as usb:0: is it plugged in"):
        pipeline.open_runner(folder, "delegate")

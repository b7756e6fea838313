"""Benches of emulated boards: two at once, markers, runs in which nothing ran, JUnit."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from toolchain.cli import run as command

ROOT = Path(__file__).resolve().parents[2]
HIL = "toolchain/bench/hil"
BENCH = '[[board]]\nboard = "netduinoplus2"\n[[board]]\nboard = "mps3-an547"\n'

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


def bench_command(*arguments: str, bench: Path | None) -> list[str]:
    installed = {entry.name for entry in entry_points(group="pytest11")}
    plugin = [] if "thimble" in installed else ["-p", "toolchain.bench.pytest_plugin"]
    named = ["--bench", str(bench)] if bench else []
    return [
        *(sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"),
        *(*plugin, *named, *arguments),
    ]


def run_tests(
    folder: Path, text: str, *arguments: str, bench: str | None = BENCH
) -> subprocess.CompletedProcess[str]:
    """`pytest` on a file of a user's own, in a folder of its own."""
    (folder / "test_own.py").write_text(text)
    file = folder / "bench.toml"
    if bench is not None:
        file.write_text(bench)
    command = bench_command(
        f"--rootdir={folder}", *arguments, str(folder), bench=None if bench is None else file
    )
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False
    )


MARKED = """
import pytest

@pytest.mark.needs_core("mve")
def test_mve(board): assert board.name == "mps3-an547"

@pytest.mark.needs_core("cortex-m4")
def test_m4(board): assert board.name == "netduinoplus2"

@pytest.mark.needs_ram(200_000)
def test_ram(board): assert board.name == "mps3-an547"

@pytest.mark.needs_core("dsp")
@pytest.mark.needs_ram(1_000)
def test_both(board): pass
"""


def test_markers_leave_out_boards_that_lack_something(tmp_path: Path) -> None:
    junit = tmp_path / "out.xml"
    done = run_tests(tmp_path, MARKED, f"--junitxml={junit}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed, 3 skipped" in done.stdout
    for reason in (
        "netduinoplus2 has no mve",
        "mps3-an547 has no cortex-m4",
        "netduinoplus2 has less than 200000 B RAM",
    ):
        assert reason in done.stdout
    (suite,) = ElementTree.parse(junit).getroot().iter("testsuite")
    assert (suite.get("tests"), suite.get("skipped"), suite.get("failures")) == ("8", "3", "0")
    assert "test_mve[mps3-an547]" in {case.get("name") for case in suite.iter("testcase")}


NEVER = """
import pytest

@pytest.mark.needs_ram(1_000_000_000)
def test_big(board): pass
"""


def test_nothing_run_is_a_failure_in_bench_mode_only(tmp_path: Path) -> None:
    done = run_tests(tmp_path, NEVER)
    assert done.returncode == 1 and "nothing ran on the bench" in done.stdout
    done = run_tests(tmp_path, NEVER, "-k", "no_such_test")
    assert done.returncode == 1 and "nothing ran on the bench" in done.stdout
    done = run_tests(tmp_path, NEVER, bench=None)
    assert done.returncode == 0 and "needs --bench bench.toml" in done.stdout


def test_a_wrong_bench_file_is_told_in_one_line(tmp_path: Path) -> None:
    done = run_tests(tmp_path, NEVER, bench='[[board]]\nboard = "netduinoplus2"\nprot = "x"\n')
    assert done.returncode == 4 and "unknown field 'prot'" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


OWN = """
from pathlib import Path
import numpy as np

def test_digits(board, firmware):
    deployment = firmware(Path("examples/digits/digits_int8.tflite"))
    sample = {end.name: end.random(np.random.default_rng(1)) for end in deployment.inputs}
    assert deployment.run(sample).count == deployment.run(sample).count

def test_budget(board, firmware):
    deployment = firmware("examples/digits/digits_int8.tflite", timed=True)
    sample = {end.name: end.random(np.random.default_rng(1)) for end in deployment.inputs}
    done = deployment.run(sample)
    time = deployment.run_time(done)
    assert (time.unit, time.basis) == ("cycles", "trace")
    assert time.total > time.instructions == done.count and 1 < time.milliseconds < 5

def test_scheduler(board, firmware):
    assert firmware("examples/digits/digits_qdq.onnx", scheduler="kahn").inputs
"""


def test_users_write_their_own(tmp_path: Path) -> None:
    done = run_tests(tmp_path, OWN, bench='[[board]]\nboard = "netduinoplus2"\n')
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.long
def test_two_benches_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    """The same boards and the same tests, at the same time, in two runs."""
    file = tmp_path / "bench.toml"
    file.write_text(BENCH)
    tests = (
        "toolchain/bench/hil/test_link.py",
        "toolchain/bench/hil/test_models.py::test_a_long_soak_changes_nothing",
    )
    both = [
        subprocess.Popen(
            bench_command(*tests, f"--junitxml={tmp_path / name}", "--soak=10", bench=file),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in ("first.xml", "second.xml")
    ]
    counts = []
    for run, name in zip(both, ("first.xml", "second.xml"), strict=True):
        said, _ = run.communicate(timeout=800)
        assert run.returncode == 0, said
        (suite,) = ElementTree.parse(tmp_path / name).getroot().iter("testsuite")
        counts.append((suite.get("tests"), suite.get("failures"), suite.get("errors")))
    assert counts[0] == counts[1] and int(counts[0][0] or 0) == 16


@pytest.mark.long
def test_a_model_in_float_is_compared_as_verify_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx = pytest.importorskip("onnx")
    of, real = onnx.helper, onnx.TensorProto.FLOAT
    weights = np.random.default_rng(0).normal(size=(8, 5)).astype(np.float32)
    graph = of.make_graph(
        [of.make_node("MatMul", ["x", "w"], ["y"]), of.make_node("Sigmoid", ["y"], ["z"])],
        "real",
        [of.make_tensor_value_info("x", real, [1, 8])],
        [of.make_tensor_value_info("z", real, [1, 5])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = of.make_model(graph, opset_imports=[of.make_opsetid("", 13)], ir_version=8)
    (tmp_path / "models").mkdir()
    onnx.save(model, tmp_path / "models" / "real.onnx")
    file = tmp_path / "bench.toml"
    file.write_text('[[board]]\nboard = "netduinoplus2"\n')
    words = [
        "hil",
        str(file),
        "--models",
        str(tmp_path / "models"),
        "-k",
        "references",
        "--json",
        "-",
    ]
    assert command(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["passed"], said["failed"], said["skipped"]) == (1, 0, 0)


def test_the_command_counts_by_board(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`thimble hil`: its JSON has every test; a selection that fits none is an error."""
    file = tmp_path / "bench.toml"
    file.write_text('[[board]]\nboard = "netduinoplus2"\n')
    words = ["hil", str(file), "--json", "-", "-k", "every_byte or refused"]
    assert command(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["passed"], said["failed"], said["skipped"]) == (3, 0, 0)
    assert {test["board"] for test in said["tests"]} == {"netduinoplus2"}
    assert command([*words[:2], "-k", "no_such_test"]) == 2
    assert "no test was run by 'no_such_test'" in capsys.readouterr().err
    assert command(["hil", str(tmp_path / "none.toml")]) == 2

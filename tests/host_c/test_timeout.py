"""What never ends is stopped, wherever it runs on this machine; nothing is left behind.

The limits are short, and what runs has no end: no result depends on how quick the machine is.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np
import pytest

from tests.support.endless import endless_loop
from toolchain.cli import run
from toolchain.deployment.compile import compile_model
from toolchain.deployment.run import deployed
from toolchain.errors import InputError
from toolchain.frontends.tflite import FRONT_END
from toolchain.ops.control import while_loop
from toolchain.ops.interpret import interpret
from toolchain.planning.options import PlanOptions


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model beside its build; an input for which it never ends, and one for which it does."""
    made = tmp_path_factory.mktemp("endless")
    (made / "endless.tflite").write_bytes(endless_loop())
    np.save(made / "zero.npy", np.zeros(1, np.float32))
    np.save(made / "one.npy", np.ones(1, np.float32))
    compile_model(made / "endless.tflite", "host", made / "out", PlanOptions(allow_float=True))
    return made


def _refused(code: int, capfd: pytest.CaptureFixture[str]) -> None:
    said = capfd.readouterr().err
    assert code == 2 and said.count("error:") == 1
    assert "did not end within 0.5 s, and was stopped" in said and "--timeout" in said


def test_run_stops(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    command = ["run", str(folder / "out"), "--input"]
    _refused(run([*command, str(folder / "zero.npy"), "--timeout", "0.5"]), capfd)
    assert run([*command, str(folder / "one.npy")]) == 0


def test_verify_stops_the_reference_too(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """LiteRT turns without end in its own process, before the model's own program does."""
    command = ["verify", str(folder / "endless.tflite"), "--board", "host", "--float"]
    zero = ["--input", str(folder / "zero.npy"), "--runs", "0"]
    _refused(run([*command, *zero, "--timeout", "0.5"]), capfd)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_a_limit_is_a_number_of_seconds(
    text: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", str(folder / "out"), "--timeout", text]) == 2
    assert "--timeout" in capfd.readouterr().err


def test_the_program_is_gone(folder: Path) -> None:
    with deployed(folder / "out", limit_seconds=0.5) as deployment:
        process = deployment.session.program._process
        with pytest.raises(InputError, match="an inference of out on this machine did not end"):
            deployment.run({"tensor_0": np.zeros(1, np.float32)})
        assert process.returncode == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)


def test_the_reference_in_numpy_counts_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(while_loop, "MOST_TURNS", 100)
    graph = FRONT_END.read(endless_loop(), Path("endless.tflite"))
    assert interpret(graph, [np.ones(1, np.float32)])[0] == 1
    with pytest.raises(InputError, match=r"operator 'while_0' .*has turned 100 times"):
        interpret(graph, [np.zeros(1, np.float32)])

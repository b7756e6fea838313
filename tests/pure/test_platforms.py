"""What other systems lack: modules of Unix, inherited sockets, users; and what terminals show."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolchain.cli import run
from toolchain.codegen.names import checked_name
from toolchain.errors import InputError
from toolchain.files import _lock

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
EVERY_MODULE = """
import sys
for name in ("termios", "fcntl", "pty", "tty", "resource", "grp", "pwd"):
    sys.modules[name] = None
import importlib, pkgutil, toolchain
for module in pkgutil.walk_packages(toolchain.__path__, "toolchain."):
    if module.name.endswith(("__main__", "pytest_plugin")):
        continue
    importlib.import_module(module.name)
    print(module.name)
"""


@pytest.mark.slow
def test_every_module_is_imported_without_modules_of_unix() -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"toolchain.device.link", "toolchain.files._lock", "toolchain.bench.bench_file"} <= set(
        done.stdout.split()
    )


def test_where_files_have_no_owner_they_are_ours(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert _lock.is_ours(tmp_path.stat())
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert not _lock.is_ours(tmp_path.stat())
    monkeypatch.delattr(os, "geteuid")
    assert _lock.is_ours(tmp_path.stat())


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals are of Unix")
@pytest.mark.parametrize("no_color", ["", "1"])
def test_a_terminal_gets_no_escape_codes_with_no_color(no_color: str) -> None:
    import pty

    leader, follower = pty.openpty()
    environment = dict(os.environ, PYTHONPATH=str(ROOT), TERM="xterm", COLUMNS="200")
    environment["NO_COLOR"] = no_color
    command = [sys.executable, "-m", "toolchain.cli", "boards"]
    with subprocess.Popen(
        command, env=environment, stdout=follower, stderr=subprocess.DEVNULL, stdin=follower
    ) as process:
        os.close(follower)
        said = b""
        while True:
            try:
                part = os.read(leader, 65536)
            except OSError:  # how Linux ends
                break
            if not part:
                break
            said += part
        assert process.wait() == 0
    os.close(leader)
    assert b"netduinoplus2" in said
    assert (b"\x1b" in said) is not bool(no_color)


@pytest.mark.slow
def test_a_pipe_gets_no_escape_codes() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "toolchain.cli",
            "plan",
            str(DIGITS),
            "-b",
            "netduinoplus2",
            "--plan",
            "fast",
        ],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True,
        check=True,
    )
    assert b"\x1b" not in done.stdout + done.stderr


def test_quiet_leaves_out_notes_and_keeps_results_and_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use = SimpleNamespace(text="an operator computes in float32")
    monkeypatch.setattr("toolchain.quantise.float_use.float_use", lambda plan: use)
    words = ["plan", str(DIGITS), "-b", "netduinoplus2", "--plan", "fast", "--no-split"]
    assert run(words) == 0
    loud = capsys.readouterr()
    assert use.text in loud.err
    assert run([*words, "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert quiet.out == loud.out
    assert run(["plan", "no-such.tflite", "-q"]) == 2
    assert "no-such.tflite" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["Wake", "wake-word", "2wake", "int", "wake__word", "string", "", "xor_eq", "linux"]
)
def test_a_name_that_c_does_not_take_is_refused_with_one_that_it_does(name: str) -> None:
    with pytest.raises(InputError, match="cannot name a model in C") as caught:
        checked_name(name)
    (remedy,) = caught.value.remedies
    assert checked_name(remedy.removeprefix("--name "))


def test_the_name_is_that_of_functions_and_files(tmp_path: Path) -> None:
    words = ["compile", str(DIGITS), "-b", "netduinoplus2", "--library", "--name", "wake_word"]
    assert run([*words, "-o", str(tmp_path / "out"), "-q"]) == 0
    header = (tmp_path / "out" / "wake_word.h").read_text()
    assert "wake_word_run(" in header
    assert "digits_int8_" not in header


@pytest.mark.slow
def test_weights_are_one_number_in_plan_header_and_compile(tmp_path: Path) -> None:
    planned, compiled = tmp_path / "plan.json", tmp_path / "compile.json"
    assert run(["plan", str(DIGITS), "-b", "netduinoplus2", "--json", str(planned)]) == 0
    words = [
        "compile",
        str(DIGITS),
        "-b",
        "netduinoplus2",
        "--name",
        "digits",
        "-o",
        str(tmp_path / "out"),
    ]
    assert run([*words, "--json", str(compiled)]) == 0
    before, after = json.loads(planned.read_text()), json.loads(compiled.read_text())
    assert before["weight_bytes"] == after["weight_bytes"] > 0
    header = (tmp_path / "out" / "digits.h").read_text()
    assert f"{before['weight_bytes']:,} bytes of flash" in header
    assert before["flash_bytes"] == pytest.approx(after["flash_bytes"], rel=0.25)

"""How commands end that do not return: exit codes, one sentence, a report to send."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolchain.cli import doctor, run
from toolchain.cli._console import error_console, output_console
from toolchain.cli._leaving import RAISE_VARIABLE

THIMBLE = [sys.executable, "-m", "toolchain.cli"]


def _fails_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """`thimble doctor` ends so."""

    def broken() -> None:
        raise error

    monkeypatch.setattr(doctor, "command", broken)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (MemoryError("Unable to allocate 8 TiB"), 2, "error: memory ran out: Unable to allocate"),
        (OSError(28, "No space left on device", "x.c"), 2, "error: x.c: No space left on device"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_what_a_machine_does_to_us_is_one_sentence(
    error: BaseException,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    _fails_with(error, monkeypatch)
    assert run(["doctor"]) == code
    shown = capfd.readouterr().err
    assert said in shown
    assert shown.count("\n") == bool(said)


def test_what_nobody_foresaw_leaves_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    _fails_with(IndexError("list index \udc81 out of range"), monkeypatch)
    monkeypatch.delenv(RAISE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "model.tflite"
    file.write_bytes(b"a secret")
    monkeypatch.setattr(sys, "argv", ["thimble", "doctor"])
    assert run() == 70
    shown = capfd.readouterr().err
    assert "internal error: IndexError: list index" in shown
    assert "Traceback" not in shown
    report = re.search(r"with the file (\S+\.txt)", shown)
    assert report is not None
    text = Path(report[1]).read_text()
    assert text.startswith("thimble doctor\n")
    assert "Traceback" in text
    assert "numpy" in text


def test_a_report_names_files_by_their_hash_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolchain.cli._leaving import leave

    monkeypatch.delenv(RAISE_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "model.tflite"
    file.write_bytes(b"a secret")
    assert leave(ValueError("odd"), ["plan", str(file), "--board", "x"]) == 70
    (report,) = (tmp_path / "thimble" / "reports").iterdir()
    text = report.read_text()
    assert f"8 bytes, sha256 {hashlib.sha256(b'a secret').hexdigest()}" in text
    assert "a secret" not in text


def test_tests_do_not_pass_over_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _fails_with(IndexError("odd"), monkeypatch)
    with pytest.raises(IndexError, match="odd"):
        run(["doctor"])


@pytest.mark.slow
def test_a_reader_that_stops_is_no_error() -> None:
    """Real pipes: the reader is gone before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*THIMBLE, "ops"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", [["boards"], ["boards", "--json", "-"]])
def test_a_full_disk_is_one_sentence(command: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*THIMBLE, *command], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    (line,) = done.stderr.decode().splitlines()
    assert line == "error: cannot write the standard output: No space left on device"


def test_ctrl_c_is_130(tmp_path: Path) -> None:
    """While the command waits for its input, which a pipe tells.

    A signal that arrives just before the blocking read is seen after it, so a user may have to
    press again. Tests that run in the background of a shell ignore Ctrl-C, and what they start
    would, too.
    """
    pipe = tmp_path / "buffers.csv"
    os.mkfifo(pipe)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    started = subprocess.Popen(
        [*THIMBLE, "arena", str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    signal.signal(signal.SIGINT, before)
    said = b""
    with pipe.open("w"):  # opens when the command does
        while started.returncode is None:
            started.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, said = started.communicate(timeout=20)
    assert (started.returncode, said.strip()) == (130, b"interrupted")


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(tmp_path: Path, closed: str) -> None:
    """What was asked for as a file is written, whole, and nothing else is in it."""
    written = tmp_path / "boards.json"
    command = shlex.join([*THIMBLE, "boards", "--json", str(written)])
    assert subprocess.run(["sh", "-c", f"{command} {closed}"], check=False).returncode == 0
    assert "boards" in json.loads(written.read_text())


def test_names_in_files_do_not_steer_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    output_console().print("a\x1b[31mb\x9bc\x00d\ne", markup=False)
    error_console().print("\x1b]0;title", markup=False)
    said = capfd.readouterr()
    assert said.out == "a␛[31mb\\x9bc␀d\ne\n"
    assert said.err == "␛]0;title\n"

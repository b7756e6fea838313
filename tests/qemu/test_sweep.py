"""`thimble sweep` of what runs on boards: rows of verify and profile."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path

import pytest

from toolchain.cli import run
from toolchain.deployment.compile import compile_model
from toolchain.device.qemu import find_qemu
from toolchain.resources import RUNTIME_C

DIGITS = RUNTIME_C.parent / "examples" / "digits" / "digits_int8.tflite"


def test_rows_of_verify_and_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["sweep", str(DIGITS), "-b", "netduinoplus2", "--do", "verify,profile", "--runs", "2"]
    file = tmp_path / "rows.sqlite"
    assert (
        run([*line, "-j", "1", "-o", str(file), "--fail-on", "differing > 0", "--json", "-"]) == 0
    )
    verified, profiled = json.loads(capsys.readouterr().out)["rows"]
    assert (verified["runs"], verified["differing"], verified["passed"]) == (2, 0, True)
    assert verified["elements"] == 20
    assert verified["latency"]["unit"] == "instructions"
    assert verified["predicted"]["milliseconds"] > 0
    assert profiled["latency"]["basis"] == "trace"
    assert profiled["latency"]["total"] == profiled["total"] > 0
    for row in (verified, profiled):
        assert row["ok"]
        assert not row["memory_estimated"]
        assert row["arena_bytes"] == 2560
        assert "differences" not in row
        assert "operators" not in row


def until_heard(port: int, machine: subprocess.Popen[bytes]) -> None:
    """Until the machine listens at the port; nothing connects, because it takes one caller."""
    waiting = f":{port:04X} 00000000:0000 0A"
    while waiting not in Path("/proc/net/tcp").read_text():
        assert machine.poll() is None
        time.sleep(0.02)


def test_a_board_of_a_bench_runs_one_task_at_a_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two workers, and one board behind a serial line over TCP, which takes one caller."""
    folder = tmp_path / "build"
    compile_model(DIGITS, "netduinoplus2", folder)
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    bench = tmp_path / "bench.toml"
    bench.write_text(f'[[board]]\nboard = "netduinoplus2"\nport = "socket://127.0.0.1:{port}"\n')
    machine = [find_qemu(), "-machine", "netduinoplus2", "-icount", "shift=0", "-nographic"]
    ends = ["-monitor", "none", "-serial", f"tcp:127.0.0.1:{port},server=on,wait=off"]
    quiet = subprocess.DEVNULL
    board = subprocess.Popen(
        [*machine, *ends, "-kernel", str(folder / "firmware.elf")], stdout=quiet, stderr=quiet
    )
    try:
        until_heard(port, board)
        line = ["sweep", str(DIGITS), "-b", "netduinoplus2", "--bench", str(bench)]
        line += ["--do", "verify,profile", "-j", "2"]
        assert run([*line, "--runs", "2", "-o", str(tmp_path / "r.sqlite"), "--json", "-"]) == 0
    finally:
        board.kill()
        board.wait()
    verified, profiled = json.loads(capsys.readouterr().out)["rows"]
    assert (verified["passed"], verified["differing"]) == (True, 0)
    assert profiled["unit"] == "instructions"  # nobody traces a board behind a line

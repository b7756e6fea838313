"""A board that hangs on a bench: its power is cycled by the owner's command, once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.net import free_port
from toolchain.bench.bench_file import BenchBoard, NotThereError, held, read_bench, start
from toolchain.bench.echo import ECHO_BYTES, echo_firmware
from toolchain.device.firmware import Firmware
from toolchain.device.qemu import find_qemu
from toolchain.errors import LinkError, MissingToolError

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
BOARD = "netduinoplus2"
SUPPLY = """
import os, signal, subprocess, sys
pid = open(sys.argv[1]).read()
os.kill(int(pid), signal.SIGKILL)
new = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
open(sys.argv[1], "w").write(str(new.pid))
"""
"""A hub's port: the emulator is killed, and another one starts."""


@pytest.fixture
def firmware(tmp_path: Path) -> Firmware:
    return echo_firmware(BOARD, tmp_path / "echo")


@pytest.fixture
def hung(firmware: Firmware, tmp_path: Path) -> Iterator[BenchBoard]:
    """A board whose processor stands still, at a port that its supply brings back."""
    port = free_port()
    command = [find_qemu(), "-machine", BOARD, "-icount", "shift=0", "-kernel", str(firmware.elf)]
    command += ["-nodefaults", "-display", "none"]
    command += ["-serial", f"tcp:127.0.0.1:{port},server=on,wait=off"]
    pid = tmp_path / "pid"
    with subprocess.Popen([*command, "-S"], stdin=subprocess.DEVNULL) as machine:
        pid.write_text(str(machine.pid))
        words = [sys.executable, "-c", SUPPLY, str(pid), *command]
        listed = ", ".join(repr(word) if "\n" not in word else f"'''{word}'''" for word in words)
        file = tmp_path / "bench.toml"
        file.write_text(
            f'[[board]]\nboard = "{BOARD}"\nport = "socket://127.0.0.1:{port}"\n'
            f"power_cycle = [{listed}]\n"
        )
        yield read_bench(file).boards[0]
        os.kill(int(pid.read_text()), signal.SIGKILL)


def test_its_power_is_cycled(hung: BenchBoard, firmware: Firmware) -> None:
    data = np.arange(ECHO_BYTES, dtype=np.int16).astype(np.int8)[None]
    with held(hung) as port:
        with pytest.warns(UserWarning, match="netduinoplus2: its power was cycled, since"):
            session = start(hung, firmware, port)
        with session:
            np.testing.assert_array_equal(session.run([data]).outputs["output"], data[0])


@pytest.mark.parametrize(
    ("command", "error", "said"),
    [
        (("no-such-hub", "-a"), MissingToolError, "'no-such-hub', which is not installed"),
        (("sh", "-c", "echo no port 7; exit 3"), LinkError, "failed with 3: sh .*\nno port 7"),
    ],
)
def test_a_supply_that_fails_is_told(
    firmware: Firmware, command: tuple[str, ...], error: type[Exception], said: str
) -> None:
    away = BenchBoard(firmware.board, "b", port=f"socket://127.0.0.1:{free_port()}")
    with pytest.raises(NotThereError, match="cannot be flashed from here"):
        start(away, firmware, away.port)
    powered = BenchBoard(firmware.board, "b", port=away.port, power_cycle=command)
    with pytest.warns(UserWarning), pytest.raises(error, match=said):
        start(powered, firmware, powered.port)

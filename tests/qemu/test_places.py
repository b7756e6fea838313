"""A board shared through labgrid: its own coordinator, exporter and client, then QEMU."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.support.net import free_port
from toolchain.bench.echo import echo_firmware
from toolchain.device.firmware import Firmware
from toolchain.device.qemu import find_qemu

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_SECONDS = 300.0
BOARD = "netduinoplus2"

pytestmark = pytest.mark.skipif(
    not (
        shutil.which("arm-none-eabi-gcc")
        and shutil.which("qemu-system-arm")
        and shutil.which("labgrid-coordinator")
    ),
    reason="needs arm-none-eabi-gcc, qemu-system-arm, and labgrid on the PATH",
)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "labgrid does not come up"
        time.sleep(0.2)


class Lab:
    """A coordinator of our own, and what is run beside it; all ended with the test."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack
        self.address = f"127.0.0.1:{free_port()}"
        self.spawn("labgrid-coordinator", "-l", self.address)
        until(lambda: self.client("resources").returncode == 0)

    def spawn(self, *command: str) -> subprocess.Popen[str]:
        quiet = (self.folder / f"{Path(command[0]).name}.log").open("w")
        self.stack.callback(quiet.close)
        child = subprocess.Popen(
            command, cwd=self.folder, stdout=quiet, stderr=subprocess.STDOUT, text=True
        )
        self.stack.callback(child.wait)
        self.stack.callback(child.terminate)
        return child

    def client(self, *command: str) -> subprocess.CompletedProcess[str]:
        line = ["labgrid-client", "-x", self.address, *command]
        return subprocess.run(
            line, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
        )

    def export(self, resource: str, place: str) -> None:
        """Serve a resource (its class and fields in YAML) and make a place of it."""
        file = self.folder / f"{place}.yaml"
        file.write_text(f"{place}:\n  {resource}\n")
        host = ("--hostname", "127.0.0.1")
        self.spawn("labgrid-exporter", "-c", self.address, "-n", place, *host, str(file))
        until(lambda: f"{place}/{place}" in self.client("resources").stdout)
        assert self.client("-p", place, "create").returncode == 0
        assert self.client("-p", place, "add-match", f"{place}/{place}/*").returncode == 0

    def qemu(self, firmware: Firmware, serial: str) -> subprocess.Popen[str]:
        command = [find_qemu(), "-machine", "netduinoplus2", "-icount", "shift=0"]
        command += ["-kernel", str(firmware.elf), "-nodefaults", "-display", "none"]
        return self.spawn(*command, "-serial", serial)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        yield Lab(tmp_path, stack)


def bench(lab: Lab, *places: str) -> subprocess.CompletedProcess[str]:
    """The bench's tests of the line on the boards at these places."""
    entries = "".join(f'[[board]]\nboard = "{BOARD}"\nplace = "{place}"\n' for place in places)
    file = lab.folder / "bench.toml"
    file.write_text(f'coordinator = "{lab.address}"\n{entries}')
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "toolchain/bench/hil/test_link.py",
        "--bench",
        str(file),
    ]
    installed = {entry.name for entry in entry_points(group="pytest11")}
    command += [] if "thimble" in installed else ["-p", "toolchain.bench.pytest_plugin"]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=800, check=False
    )


def test_a_bench_of_reserved_places(lab: Lab, tmp_path: Path) -> None:
    firmware = echo_firmware(BOARD, tmp_path / "echo")
    port = free_port()
    lab.qemu(firmware, f"tcp:127.0.0.1:{port},server=on,wait=off")
    fields = f"{{host: 127.0.0.1, port: {port}, protocol: raw}}"
    lab.export(f"NetworkSerialPort: {fields}", "raw")
    places = ["raw"]
    if shutil.which("ser2net"):
        machine = lab.qemu(firmware, "pty")
        log = tmp_path / f"{Path(find_qemu()).name}.log"
        until(lambda: "/dev/pts/" in log.read_text())
        found = re.search(r"/dev/pts/\d+", log.read_text())
        assert found is not None and machine.poll() is None
        lab.export(f"RawSerialPort: {{port: {found[0]}, speed: 115200}}", "rfc2217")
        places.append("rfc2217")

    done = bench(lab, *places)
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0 and passed is not None, done.stdout + done.stderr
    assert int(passed[1]) >= 7 * len(places) and "skipped" not in done.stdout
    assert "acquired: None" in lab.client("-p", "raw", "show").stdout

    assert lab.client("-p", "raw", "acquire").returncode == 0
    refused = bench(lab, *places)
    assert refused.returncode != 0
    assert "labgrid refuses the place 'raw'" in refused.stderr + refused.stdout
    assert "Traceback" not in refused.stderr + refused.stdout
    assert "acquired: None" in lab.client("-p", places[-1], "show").stdout or len(places) == 1

"""Firmware in QEMU at the end of a stand-in for an ST-LINK's virtual port, which comes and goes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

from tests.support.stlink import StLinkPort
from toolchain.bench.echo import echo_firmware
from toolchain.bench.probe_model import probe_firmware, probe_input, probe_output
from toolchain.boards import board
from toolchain.device import protocol
from toolchain.device.firmware import Firmware
from toolchain.device.link import SerialTransport
from toolchain.device.ports import find_port
from toolchain.device.protocol import Frame, Type
from toolchain.device.qemu import Machine
from toolchain.device.session import Session, open_board
from toolchain.errors import LinkError

ROOT = Path(__file__).resolve().parents[2]
BAUD = 115_200
LINE = "toolchain/bench/hil/test_link.py"

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    return probe_firmware(board("netduinoplus2"), tmp_path_factory.mktemp("probe"))


@contextmanager
def adapter(firmware: Firmware, folder: Path) -> Iterator[StLinkPort]:
    with Machine(firmware.board, firmware.elf) as machine:
        port = StLinkPort(machine.transport, folder / "usb-STM32_STLink-if02")
        try:
            yield port
        finally:
            port.close()


def is_right(session: Session, rng: np.random.Generator) -> int:
    data = probe_input(rng)
    run = session.run([data])
    np.testing.assert_array_equal(run.outputs["probe/out:0"], probe_output(data))
    return run.count


@contextmanager
def meanwhile(act: Callable[[], None]) -> Iterator[threading.Event]:
    """`act` in another thread; the event tells that it is done."""
    done = threading.Event()

    def whole() -> None:
        try:
            act()
        finally:
            done.set()

    thread = threading.Thread(target=whole, daemon=True)
    thread.start()
    yield done
    thread.join()


def test_it_carries_inferences_at_its_pace(firmware: Firmware, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    with adapter(firmware, tmp_path) as port:
        for _ in range(2):
            with open_board(firmware, port=str(port.link)) as session:
                start = time.monotonic()
                counts = [is_right(session, rng) for _ in range(3)]
                took = time.monotonic() - start
            assert len(set(counts)) == 1 and took > 3 * 2 * 600 * 10 / BAUD
            port.until_closed()
        assert port.happened["opened"] == 2 and port.happened["packets"] > 50


def test_an_answer_to_nobody_is_lost_and_harms_nothing(firmware: Firmware, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    with adapter(firmware, tmp_path) as port:
        for _ in range(3):
            session = open_board(firmware, port=str(port.link))
            session.write_input(0, probe_input(rng).tobytes())
            sequence, lost = session.link.sequence + 1, port.happened["lost while closed"]
            with port.held():
                session.link.transport.write(protocol.encode(Frame(sequence, Type.RUN)))
                session.close()
            while port.happened["lost while closed"] == lost:
                time.sleep(0.001)
            with open_board(firmware, port=str(port.link)) as again:
                is_right(again, rng)
            port.until_closed()
        assert port.happened["opened"] == 6 and port.happened["lost while closed"] > 0


@pytest.mark.parametrize("named", ["by its serial number", "by a link that stays"])
def test_it_comes_back_under_another_name(
    firmware: Firmware, tmp_path: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of inferences, three times; the board is not reset and goes on."""
    monkeypatch.setattr("toolchain.device.link._RETURN_SECONDS", 300.0)
    rng = np.random.default_rng(3)
    with adapter(firmware, tmp_path) as port:
        names = {port.device}
        if named == "by a link that stays":
            transport = SerialTransport(str(port.link), BAUD)
        else:
            nucleo = board("nucleo-f446re")
            found = find_port(nucleo, port.serial_number, port.attached)
            transport = SerialTransport(found, BAUD, port.attached)
        with Session(firmware, transport, None) as session:
            expected = is_right(session, rng)

            def come_and_go() -> None:
                for pause in (0.01, 0.17, 0.29):
                    time.sleep(pause)
                    port.replug(0.2)
                    names.add(port.device)

            with meanwhile(come_and_go) as done:
                while not done.is_set():
                    assert is_right(session, rng) == expected
            assert is_right(session, rng) == expected
        assert len(names) == 4 and port.happened["unplugged"] == 3


def test_a_board_that_loses_its_power_with_it_begins_the_inference_again(
    firmware: Firmware, tmp_path: Path
) -> None:
    rng = np.random.default_rng(4)
    with (
        Machine(firmware.board, firmware.elf) as after,
        adapter(firmware, tmp_path) as port,
        Session(firmware, SerialTransport(port.device, BAUD, port.attached), None) as session,
    ):
        data = probe_input(rng)
        session.write_input(0, data.tobytes())  # lost with the power
        port.replug(0.2, after.transport)
        assert is_right(session, rng) == is_right(session, rng)


def test_one_that_stays_away_is_told(
    firmware: Firmware, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolchain.device.link._RETURN_SECONDS", 1.0)
    rng = np.random.default_rng(5)
    with adapter(firmware, tmp_path) as port:
        session = Session(firmware, SerialTransport(port.device, BAUD, port.attached), None)
        is_right(session, rng)
        port.unplug()
        start = time.monotonic()
        with pytest.raises(LinkError, match=r"not back after 1 s.*is the board plugged in") as told:
            is_right(session, rng)
        assert time.monotonic() - start > 0.9 and "Errno" not in str(told.value)
        session.close()


def test_the_bench_runs_over_it(tmp_path: Path) -> None:
    """The bench's tests of the line, as far as it is not slow at this pace."""
    firmware = echo_firmware("netduinoplus2", tmp_path / "echo")
    with adapter(firmware, tmp_path) as port:
        bench = tmp_path / "bench.toml"
        bench.write_text(f'[[board]]\nboard = "netduinoplus2"\nport = "{port.link}"\n')
        command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]
        installed = {entry.name for entry in entry_points(group="pytest11")}
        command += [] if "thimble" in installed else ["-p", "toolchain.bench.pytest_plugin"]
        done = subprocess.run(
            [
                *command,
                "toolchain/bench/hil/test_link.py",
                "-k",
                "says or refused or reset",
                "--bench",
                str(bench),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )
        passed = re.search(r"(\d+) passed", done.stdout)
        assert done.returncode == 0 and passed is not None, done.stdout + done.stderr
        assert int(passed[1]) == 3 and port.happened["packets"] > 40

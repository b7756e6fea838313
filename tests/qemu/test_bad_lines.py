"""Real pseudo-terminals and network serial servers between pyserial and QEMU, some of them bad."""

from __future__ import annotations

import os
import select
import shutil
import socket
import threading
import time
import tty
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import serial.rfc2217

from toolchain.bench.probe_model import probe_firmware, probe_input, probe_output
from toolchain.boards import board
from toolchain.device.firmware import Firmware
from toolchain.device.qemu import Machine
from toolchain.device.session import open_board
from toolchain.errors import LinkError

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
Harm = Callable[[np.random.Generator, bytes], list[bytes]]


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    return probe_firmware(board("netduinoplus2"), tmp_path_factory.mktemp("probe"))


def drop(rng: np.random.Generator, data: bytes) -> list[bytes]:
    start = int(rng.integers(len(data)))
    return [data[:start] + data[start + int(rng.integers(1, 20)) :]]


def corrupt(rng: np.random.Generator, data: bytes) -> list[bytes]:
    at = int(rng.integers(len(data)))
    return [data[:at] + bytes([data[at] ^ int(rng.integers(1, 256))]) + data[at + 1 :]]


def duplicate(rng: np.random.Generator, data: bytes) -> list[bytes]:
    return [data, data]


def reorder(rng: np.random.Generator, data: bytes) -> list[bytes]:
    """Frames change places, or the halves of one do."""
    frames = [frame + b"\0" for frame in data.split(b"\0") if frame]
    if len(frames) < 2:
        return [data[len(data) // 2 :], data[: len(data) // 2]]
    return frames[::-1]


def delay(rng: np.random.Generator, data: bytes) -> list[bytes]:
    """For a time longer than the first wait for a reply, at times; whole frames come late."""
    time.sleep(float(rng.choice([0.02, 0.2, 0.7])))
    return [data]


HARMS: dict[str, Harm] = {h.__name__: h for h in (drop, corrupt, duplicate, reorder, delay)}


class Proxy:
    """A pseudo-terminal whose other end is the machine's serial line, by way of `harms`."""

    def __init__(self, machine: Machine, harms: list[str], rate: float, seed: int) -> None:
        """`rate`: of the pieces, some bytes each, in which the kernel hands over what passes."""
        self._line = machine.transport
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self.happened: Counter[str] = Counter()
        self._harms, self._rate = harms, rate
        self._rng = np.random.default_rng(seed)
        self._old = b""
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._carry, args=way, daemon=True)
            for way in ((self._from_host, self._line.write), (self._from_board, self._to_host))
        ]
        for thread in self._threads:
            thread.start()

    def _from_host(self) -> bytes:
        ready, _, _ = select.select([self._master], [], [], 0.02)
        return os.read(self._master, 4096) if ready else b""

    def _from_board(self) -> bytes:
        return self._line.read(0.02)

    def _to_host(self, data: bytes) -> None:
        os.write(self._master, data)

    def _carry(self, take: Callable[[], bytes], give: Callable[[bytes], None]) -> None:
        rng = np.random.default_rng(self._rng.integers(1 << 32))
        try:
            while not self._over.is_set():
                data = take()
                if not data:
                    continue
                parts = [data]
                if rng.random() < self._rate:
                    name = str(rng.choice(self._harms))
                    self.happened[name] += 1
                    parts = HARMS[name](rng, data)
                for part in parts:
                    give(part)
        except (OSError, LinkError):
            return  # the test is over, or pulls the cable

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        os.close(self._master)
        os.close(self._slave)


@contextmanager
def proxied(
    firmware: Firmware, harms: list[str], rate: float = 0.015, seed: int = 1
) -> Iterator[Proxy]:
    with Machine(firmware.board, firmware.elf) as machine:
        proxy = Proxy(machine, harms, rate, seed)
        try:
            yield proxy
        finally:
            proxy.close()


@pytest.mark.parametrize("harms", [[name] for name in HARMS] + [list(HARMS)], ids="-".join)
def test_a_bad_line_costs_time_but_gives_no_wrong_byte(
    firmware: Firmware, harms: list[str]
) -> None:
    rng = np.random.default_rng(3)
    right, told = 0, []
    with proxied(firmware, harms) as proxy:

        def done() -> bool:
            return right >= 3 and sum(proxy.happened.values()) >= 3

        while not done():
            try:
                with open_board(firmware, port=proxy.port) as session:
                    while not done():
                        data = probe_input(rng)
                        run = session.run([data])
                        got = run.outputs["probe/out:0"]
                        np.testing.assert_array_equal(got, probe_output(data))
                        counts = [op.count for op in session.operator_counts()]
                        assert 0.99 * run.count <= sum(counts) <= run.count
                        right += 1
            except LinkError as error:
                told.append(str(error))
        assert set(proxy.happened) == set(harms) or len(harms) > 1, proxy.happened
        assert all("board" in text for text in told), told


def test_a_cable_that_is_pulled_is_told_at_once(firmware: Firmware) -> None:
    with Machine(firmware.board, firmware.elf) as machine:
        proxy = Proxy(machine, ["drop"], 0.0, 1)
        session = open_board(firmware, port=proxy.port)
        proxy.close()
        with pytest.raises(LinkError, match=r"serial port failed|does not answer|no answer"):
            session.run([probe_input(np.random.default_rng(1))])
        session.close()


class Pty(serial.Serial):
    """A pseudo-terminal has no modem lines to ask for."""

    cts = dsr = ri = cd = property(lambda self: False)

    def _update_dtr_state(self) -> None:
        """Nothing to set."""

    _update_rts_state = _update_dtr_state


class Rfc2217Server:
    """pyserial's own port manager (RFC 2217) before a pseudo-terminal, for one client."""

    def __init__(self, device: str) -> None:
        self._serial = Pty(device, 115_200, timeout=0.02)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()

    def write(self, data: bytes) -> None:
        """What the port manager sends to the client."""
        self._client.sendall(data)

    def _serve(self) -> None:
        self._listener.settimeout(300)
        self._client, _ = self._listener.accept()
        self._client.settimeout(0.02)
        manager = serial.rfc2217.PortManager(self._serial, self)
        out = threading.Thread(target=self._reader, args=(manager,), daemon=True)
        self._threads.append(out)
        out.start()
        while not self._over.is_set():
            try:
                data = self._client.recv(1024)
            except TimeoutError:
                continue
            except OSError:
                return
            if not data:
                return
            self._serial.write(b"".join(manager.filter(data)))

    def _reader(self, manager: serial.rfc2217.PortManager) -> None:
        while not self._over.is_set():
            data = self._serial.read(self._serial.in_waiting or 1)
            if data:
                self.write(b"".join(manager.escape(data)))

    def close(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()
        self._client.close()
        self._serial.close()


def test_a_port_on_another_machine_by_rfc2217(firmware: Firmware) -> None:
    data = probe_input(np.random.default_rng(5))
    with proxied(firmware, ["drop"], rate=0.0) as proxy:
        server = Rfc2217Server(proxy.port)
        try:
            with open_board(firmware, port=f"rfc2217://127.0.0.1:{server.port}") as session:
                run = session.run([data])
                np.testing.assert_array_equal(run.outputs["probe/out:0"], probe_output(data))
                assert session.run([data]).count == run.count
        finally:
            server.close()


def test_a_port_on_another_machine_by_a_plain_socket(firmware: Firmware) -> None:
    """The machine's line served as it is; a server that hangs up is told."""
    data = probe_input(np.random.default_rng(5))
    with proxied(firmware, ["drop"], rate=0.0) as proxy:
        line = serial.serial_for_url(proxy.port, 115_200, timeout=0.02)
        listener = socket.create_server(("127.0.0.1", 0))
        ended = threading.Event()

        def serve() -> None:
            client, _ = listener.accept()
            client.settimeout(0.02)
            with client:
                while not ended.is_set():
                    client.sendall(line.read(line.in_waiting or 1))
                    try:
                        line.write(client.recv(1024))
                    except TimeoutError:
                        continue
                    except OSError:
                        return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = f"socket://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with open_board(firmware, port=port) as session:
                run = session.run([data])
                np.testing.assert_array_equal(run.outputs["probe/out:0"], probe_output(data))
                ended.set()
                thread.join()
                with pytest.raises(LinkError, match=r"closed at the other end|broke"):
                    session.run([data])
        finally:
            ended.set()
            listener.close()
            line.close()
    with pytest.raises(LinkError, match="is a serial server there"):
        open_board(firmware, port=port)

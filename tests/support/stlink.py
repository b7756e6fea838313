"""A stand-in for the virtual serial port of an ST-LINK, at the pace of its USB and of its UART.

What it does is what the Linux driver of such ports (drivers/usb/class/cdc-acm.c) and the USB's own
rules make of one: packets of 64 bytes in frames of 1 ms; bytes that come while nobody has the port
open are lost; the line's parameters are set when it is opened (here each time), which costs what is
under way and may leave a stray byte; an adapter that is reset leaves, and comes back under the
lowest free name.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
import tty
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from toolchain.device.link import Transport
from toolchain.device.ports import SerialPort
from toolchain.errors import LinkError

FRAME_SECONDS = 0.001
PACKET_BYTES = 64
BUFFER_BYTES = 512
"""In the adapter, from the host: it takes no packet (NAK) that does not fit."""
BYTES_A_SECOND = 115_200 / 10
STRAY = b"\xff"


class StLinkPort:
    """`link` is a name that stays, as in /dev/serial/by-id; `device` the port's own name, which
    changes. `line` is the board's UART. `happened` counts what was lost and how often."""

    serial_number = "066DFF343334554157254635"

    def __init__(self, line: Transport, link: Path) -> None:
        self.line, self.link = line, link
        self.happened: Counter[str] = Counter()
        self.device = ""
        self._names: set[str] = set()
        self._held: list[int] = []  # ports of others, that have its earlier names
        self._master = -1
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._plug()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def attached(self) -> tuple[SerialPort, ...]:
        """As `attached_ports`, of a machine with this adapter and a cable of another kind."""
        cable = SerialPort("/dev/ttyUSB0", "0403:6001", "A5", "FT232R", "1.0")
        ours = SerialPort(self.device, "0483:374b", self.serial_number, "STM32 STLink", "1.2")
        return (cable, ours) if self._master >= 0 else (cable,)

    def _plug(self) -> None:
        with self._lock:
            master, slave = os.openpty()
            while os.ttyname(slave) in self._names:
                self._held += (master, slave)
                master, slave = os.openpty()
            tty.setraw(slave)
            self.device = os.ttyname(slave)
            self._names.add(self.device)
            os.close(slave)
            self._from_host, self._from_board, self._open = b"", b"", False
            self._credit, self._last = 0.0, time.monotonic()
            self.link.unlink(missing_ok=True)
            self.link.symlink_to(self.device)
            self._master = master

    def unplug(self) -> None:
        with self._lock:
            self.link.unlink(missing_ok=True)
            os.close(self._master)
            self._master = -1
            self.happened["unplugged"] += 1

    def replug(self, away_seconds: float = 0.3, line: Transport | None = None) -> None:
        """Leave the bus, and come back under another name; `line`: the board's UART then, where
        it lost its power with the adapter."""
        self.unplug()
        time.sleep(away_seconds)
        with self._lock:
            self.line = line or self.line
            self._plug()

    def until_closed(self) -> None:
        """Wait until the adapter has seen that nobody has its port open."""
        while self._open:
            time.sleep(FRAME_SECONDS)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nothing passes meanwhile."""
        with self._lock:
            yield

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        for number in (*self._held, self._master):
            with contextlib.suppress(OSError):
                os.close(number)

    def _serve(self) -> None:
        due = time.monotonic()
        while not self._over.is_set():
            due = max(due + FRAME_SECONDS, time.monotonic())
            with self._lock, contextlib.suppress(LinkError, OSError):  # power off, port just closed
                self._frame()
            time.sleep(max(0.0, due - time.monotonic()))

    def _frame(self) -> None:
        coming = self.line.read(0.0)
        if self._master < 0:
            self.happened["lost while away"] += len(coming)
            return
        poll = select.poll()
        poll.register(self._master, select.POLLIN)
        events = dict(poll.poll(0)).get(self._master, 0)
        is_open = not events & select.POLLHUP
        if is_open and not self._open:
            self.happened["opened"] += 1
            self._from_host, self._from_board = STRAY, b""
        self._open = is_open
        now = time.monotonic()
        earned = (now - self._last) * BYTES_A_SECOND
        self._credit, self._last = min(self._credit + earned, float(PACKET_BYTES)), now
        whole = int(self._credit)
        self._credit -= whole
        if events & select.POLLIN and len(self._from_host) + PACKET_BYTES <= BUFFER_BYTES:
            self._from_host += os.read(self._master, PACKET_BYTES)
        if self._from_host and whole:
            self.line.write(self._from_host[:whole])
            self._from_host = self._from_host[whole:]
        if not is_open:
            self.happened["lost while closed"] += len(coming)
            return
        self._from_board += coming
        if self._from_board and whole:
            os.write(self._master, self._from_board[:whole])
            self._from_board = self._from_board[whole:]
            self.happened["packets"] += 1

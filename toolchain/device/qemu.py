"""Boards in QEMU: the machine as a child process, its serial port as a socket.

That is a socket pair whose other end the child inherits; where a child inherits no descriptors
(Windows) the emulator connects over TCP on this machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from toolchain.boards import Board
from toolchain.device.link import SocketTransport
from toolchain.errors import InputError, LinkError, MissingToolError

_PROGRAM = "qemu-system-arm"
_STOP_SECONDS = 60.0
_ENDING_SECONDS = 5.0
_CONNECT_SECONDS = 60.0
_POLL_SECONDS = 0.1
INHERITS = os.name == "posix"
"""Whether a child can inherit one end of a socket pair."""


def find_qemu() -> str:
    """The emulator's path. Raises MissingToolError with the command that installs it."""
    program = shutil.which(_PROGRAM)
    if program is None:
        raise MissingToolError(
            f"{_PROGRAM} is not installed; "
            "run: apt-get install -y --no-install-recommends qemu-system-arm"
        )
    return program


@dataclass(frozen=True)
class TraceRequest:
    """A plugin that counts. `arguments` are `name=value`; `file` gets the counts."""

    plugin: Path
    arguments: tuple[str, ...]
    file: Path

    @property
    def option(self) -> str:
        """The value of QEMU's option `-plugin`, in which a comma is doubled."""
        words = [f"file={self.plugin}", f"out={self.file}", *self.arguments]
        return ",".join(word.replace(",", ",,") for word in words)


def command_line(
    board: Board,
    elf: Path,
    serial: str,
    trace: TraceRequest | None = None,
    images: Sequence[tuple[Path, int]] = (),
) -> list[str]:
    """QEMU's command line; the guest's UART is the socket that `serial` describes, as `fd=5` or
    `host=127.0.0.1,port=4000`. `images`: files to load, and their addresses.
    """
    if board.emulator is None:
        raise InputError(f"{board.name} is not emulated: flash it and give the serial port")
    command = [find_qemu(), "-machine", board.emulator.machine, "-kernel", str(elf)]
    command += ["-icount", f"shift={board.emulator.icount_shift}"]
    command += ["-nodefaults", "-display", "none", "-monitor", "none"]
    command += ["-semihosting-config", "enable=on,target=native"]
    command += ["-chardev", f"socket,id=uart,{serial}", "-serial", "chardev:uart"]
    for file, address in images:
        name = str(file).replace(",", ",,")
        command += ["-device", f"loader,file={name},addr={address:#x},force-raw=on"]
    if trace is not None:
        command += ["-plugin", trace.option]
    return command


def _dies_with_parent() -> list[str]:
    """A prefix that has the kernel end the child with the thread that started it (Linux)."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


@dataclass(frozen=True)
class _Child:
    """The emulator's process and what it prints."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]

    def explained(self, error: LinkError) -> LinkError:
        """The error, with the emulator's words if it has ended (or ends now)."""
        try:
            code = self.process.wait(_ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            return error
        self.log.seek(0)
        said = self.log.read().decode("utf-8", "replace").strip().splitlines()
        first = said[0] if said else "no message"
        return LinkError(f"{error}: the emulator ended with code {code}: {first}")

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


class _MachineTransport(SocketTransport):
    """The line to a machine's UART; an error says why the machine ended, if it has."""

    def __init__(self, connection: socket.socket, child: _Child) -> None:
        super().__init__(connection)
        self._child = child

    def read(self, timeout_seconds: float) -> bytes:
        try:
            return super().read(timeout_seconds)
        except LinkError as error:
            raise self._child.explained(error) from error

    def write(self, data: bytes) -> None:
        try:
            super().write(data)
        except LinkError as error:
            raise self._child.explained(error) from error


@dataclass(frozen=True)
class _Line:
    """A socket for the emulator's serial port, before it runs.

    `option`: how QEMU's command line names its end. `inherited`: descriptors that the child gets.
    `connect`: our end, once the child runs.
    """

    option: str
    inherited: tuple[int, ...]
    connect: Callable[[_Child], socket.socket]


@contextlib.contextmanager
def _line(over_tcp: bool) -> Iterator[_Line]:
    if over_tcp:
        with socket.create_server(("127.0.0.1", 0), backlog=1) as server:
            port = server.getsockname()[1]
            yield _Line(f"host=127.0.0.1,port={port}", (), lambda child: _accepted(server, child))
        return
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            yield _Line(f"fd={theirs.fileno()}", (theirs.fileno(),), lambda _: ours)
        except BaseException:
            ours.close()
            raise


def _accepted(server: socket.socket, child: _Child) -> socket.socket:
    """The emulator's connection. Raises LinkError if it ends, or does not connect."""
    server.settimeout(_POLL_SECONDS)
    deadline = time.monotonic() + _CONNECT_SECONDS
    while True:
        try:
            connection, _ = server.accept()
        except TimeoutError:
            if child.process.poll() is None and time.monotonic() < deadline:
                continue
            error = child.explained(LinkError("the emulator did not connect its serial port"))
            child.end()
            raise error from None
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection


class Machine:
    """A running emulator. `transport` is the line to its UART; `stop` (or `with`) ends it.

    `trace`: what it is to count, which is in the request's file after each run of the model.
    `images`: files to load before it starts, and their addresses.
    `over_tcp`: connect its serial port over TCP, by default where nothing can be inherited.
    Raises LinkError if it does not connect.
    """

    def __init__(
        self,
        board: Board,
        elf: Path,
        trace: TraceRequest | None = None,
        *,
        images: Sequence[tuple[Path, int]] = (),
        over_tcp: bool = not INHERITS,
    ) -> None:
        log = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the child ends)
        with _line(over_tcp) as line:
            command = [*_dies_with_parent(), *command_line(board, elf, line.option, trace, images)]
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=line.inherited,
            )
            child = _Child(process, log)
            ours = line.connect(child)
        self._process = process
        self.transport = _MachineTransport(ours, child)
        self._finalizer = weakref.finalize(self, _end, child, ours)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self, timeout_seconds: float = _STOP_SECONDS) -> int:
        """Wait until the guest exits by itself. Raises LinkError if it does not."""
        try:
            return self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise LinkError("the emulator does not end by itself") from error

    def stop(self) -> None:
        self._finalizer()

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _end(child: _Child, line: socket.socket) -> None:
    child.end()
    line.close()

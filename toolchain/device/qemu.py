"""Boards in QEMU: the machine as a child process, its serial port as a socket pair."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import weakref
from pathlib import Path
from types import TracebackType
from typing import IO

from toolchain.boards import Board
from toolchain.device.link import SocketTransport
from toolchain.errors import InputError, LinkError, MissingToolError

_PROGRAM = "qemu-system-arm"
_STOP_SECONDS = 5.0


def find_qemu() -> str:
    """The emulator's path. Raises MissingToolError with the line that installs it."""
    program = shutil.which(_PROGRAM)
    if program is None:
        raise MissingToolError(
            f"{_PROGRAM} is not installed; "
            "run: apt-get install -y --no-install-recommends qemu-system-arm"
        )
    return program


def command_line(board: Board, elf: Path, serial_fd: int) -> list[str]:
    """QEMU's command line; the guest's UART is the inherited file descriptor `serial_fd`."""
    if board.emulator is None:
        raise InputError(f"{board.name} is not emulated: flash it and give the serial port")
    command = [find_qemu(), "-machine", board.emulator.machine, "-kernel", str(elf)]
    command += ["-icount", f"shift={board.emulator.icount_shift}"]
    command += ["-nodefaults", "-display", "none", "-monitor", "none", "-audiodev", "none,id=none"]
    command += ["-semihosting-config", "enable=on,target=native"]
    command += ["-chardev", f"socket,id=uart,fd={serial_fd}", "-serial", "chardev:uart"]
    return command


def _dies_with_parent() -> list[str]:
    """A prefix that has the kernel end the child with the thread that started it (Linux)."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


class Machine:
    """A running emulator. `transport` is the line to its UART; `stop` (or `with`) ends it."""

    def __init__(self, board: Board, elf: Path) -> None:
        ours, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (closed in stop)
        with theirs:
            command = [*_dies_with_parent(), *command_line(board, elf, theirs.fileno())]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
            )
        self.transport = SocketTransport(ours)
        self._finalizer = weakref.finalize(self, _end, self._process, ours, self._log)

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self, timeout_seconds: float = _STOP_SECONDS) -> int:
        """Wait for the guest to end by itself. Raises LinkError if it does not."""
        try:
            return self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise LinkError("the emulator does not end by itself") from error

    def failure(self) -> str:
        """What the emulator said if it has ended, '' while it runs."""
        if self._process.poll() is None:
            return ""
        self._log.seek(0)
        said = self._log.read().decode("utf-8", "replace").strip().splitlines()
        code = self._process.returncode
        return f"the emulator ended with code {code}: {said[-1] if said else 'no message'}"

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


def _end(process: subprocess.Popen[bytes], line: socket.socket, log: IO[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    with contextlib.suppress(OSError):
        line.close()
    log.close()

"""A line to a board: requests out, replies in; time-outs, and retries where they are safe.

A request that failed because of a damaged frame or a lost reply is sent again with the same
sequence number. That is safe for every type: reading and writing twice changes nothing, and the
board does not run the model again for a number it has just answered. Each HELLO starts the numbers
at a random one. A board therefore refuses late requests of this connection or an earlier one, and
after a reset everything until the next HELLO: BoardResetError.
"""

from __future__ import annotations

import contextlib
import errno
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from toolchain.device import protocol
from toolchain.device.ports import SerialPort, attached_ports, port_at
from toolchain.device.protocol import CRASHED, ERROR, REPLY, ErrorCode, Frame, Type
from toolchain.errors import LinkError
from toolchain.packages import lazy

if TYPE_CHECKING:
    import serial
else:
    serial = lazy("serial")

try:
    import fcntl
    import termios

    _PORT_FAILURES: tuple[type[Exception], ...] = (OSError, termios.error)
except ImportError:  # Windows, where pyserial raises nothing else
    fcntl = termios = None  # type: ignore[assignment]
    _PORT_FAILURES = (OSError,)

DEFAULT_TIMEOUT_SECONDS = 4.0
_ATTEMPTS = 5
_LAST_SEQUENCE = 0xFFFFFFFF
_FIRST_WAIT_SECONDS = 2.0
_SILENT = "it kept silent"
_QUIET_SECONDS = 0.05
_NOISE_SECONDS = 2.0
_POLL_SECONDS = 0.02
_WRITE_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_HANDSHAKE_STEP_SECONDS = 0.2
_SETTLE_SECONDS = 2.0
"""After a port has appeared: udev sets its owner and group, and other programs look at it."""
_RETURN_SECONDS = 5.0
"""An adapter that is reset leaves the bus and is listed anew within about a second."""


class NoAnswerError(LinkError):
    """No good answer came on the line for as long as was waited."""


class SilentError(NoAnswerError):
    """Nothing came at all."""


class Transport(Protocol):
    """Bytes both ways. `read` returns what has come within the time-out, b'' if nothing has."""

    def read(self, timeout_seconds: float) -> bytes: ...

    def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


class SocketTransport:
    """A connected stream socket, such as the emulator's serial port."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def read(self, timeout_seconds: float) -> bytes:
        self._connection.settimeout(max(timeout_seconds, 0.001))
        try:
            data = self._connection.recv(65536)
        except TimeoutError:
            return b""
        except OSError as error:
            raise LinkError(f"the line to the board broke: {error}") from error
        if not data:
            raise LinkError("the line to the board was closed at the other end")
        return data

    def write(self, data: bytes) -> None:
        try:
            self._connection.settimeout(_WRITE_SECONDS)
            self._connection.sendall(data)
        except OSError as error:
            raise LinkError(f"the line to the board broke: {error}") from error

    def close(self) -> None:
        self._connection.close()


class LineLostError(LinkError):
    """The port disappeared under an open line; `reopen` waits for it to come back."""

    def __init__(self, port: str, reason: object, reopen: Callable[[], None]) -> None:
        super().__init__(f"the serial port {port} failed: {reason}")
        self.reopen = reopen


class SerialTransport:
    """Anything that pyserial opens: a device, `rfc2217://host:port`. A device is locked.

    If a USB port disappears, `reopen` waits for it by its serial number. It may come back under
    another name, since the old one is taken until it is closed. `attached` lists the machine's
    ports.
    """

    def __init__(
        self,
        port: str,
        baud: int,
        attached: Callable[[], tuple[SerialPort, ...]] = attached_ports,
    ) -> None:
        self._port, self._baud, self._attached = port, baud, attached
        self._local = "://" not in port
        self._serial: Any = self._opened(lambda: port, _SETTLE_SECONDS if self._local else 0.0)
        self._identity = port_at(port, attached) if self._local else None

    def _opened(self, where: Callable[[], str], patience_seconds: float) -> object:
        """The port that is at `where()`, tried until it opens. Raises LinkError."""
        deadline = time.monotonic() + patience_seconds
        while True:
            port = self._port
            try:
                port = where()
                return self._open(port)
            except _PORT_FAILURES as error:
                if time.monotonic() >= deadline:
                    raise LinkError(
                        f"cannot open the serial port {port!r}: {_why_closed(port, error)}"
                    ) from error
            except ValueError as error:  # a speed or an address that cannot be
                raise LinkError(f"cannot open the serial port {port!r}: {error}") from error
            time.sleep(_POLL_SECONDS)

    def _open(self, port: str) -> object:
        open_port: Any = serial.serial_for_url
        alone = {"exclusive": True, "write_timeout": _WRITE_SECONDS}
        options = alone if self._local else {}  # unknown to RFC 2217
        opened = open_port(port, baudrate=self._baud, timeout=_POLL_SECONDS, **options)
        try:
            _claim(opened, alone=True)
            opened.reset_input_buffer()
        except Exception:
            opened.close()
            raise
        return opened

    def _lost(self, error: Exception) -> LinkError:
        if isinstance(error, serial.SerialTimeoutException):
            return LinkError(
                f"the serial port {self._port} has taken no bytes for {_WRITE_SECONDS:g} s: plug "
                "the board in anew"
            )
        if not self._local or not self._serial.is_open:  # closed on purpose
            return LinkError(f"the serial port failed: {error}")
        return LineLostError(self._port, error, self.reopen)

    def reopen(self) -> None:
        """Open the port again, wherever it is now. Raises LinkError if it stays away."""
        self.close()
        try:
            self._serial = self._opened(self._where, _RETURN_SECONDS)
        except LinkError as error:
            raise LinkError(
                f"the serial port failed, and is not back after {_RETURN_SECONDS:g} s: {error}"
            ) from error

    def _where(self) -> str:
        """The name of the port now. Raises FileNotFoundError while it is away: another adapter may
        have its name then."""
        was = self._identity
        if was is None or not was.serial_number:
            return self._port
        for port in self._attached():
            if was.is_again(port):
                return port.device
        raise FileNotFoundError(errno.ENOENT, "not attached", self._port)

    def read(self, timeout_seconds: float) -> bytes:
        try:
            deadline = time.monotonic() + timeout_seconds  # a new time-out is slow over a network
            while not (first := self._serial.read(1)) and time.monotonic() < deadline:
                continue
            more = self._serial.read(self._serial.in_waiting) if first else b""
            return bytes(first + more)
        except _PORT_FAILURES as error:
            raise self._lost(error) from error

    def write(self, data: bytes) -> None:
        """Pass `data` to the driver without waiting for it to be sent.

        Waiting (tcdrain) would never end if the adapter takes nothing.
        """
        try:
            self._serial.write(data)
        except _PORT_FAILURES as error:
            raise self._lost(error) from error

    def close(self) -> None:
        with contextlib.suppress(*_PORT_FAILURES):
            _claim(self._serial, alone=False)
        with contextlib.suppress(*_PORT_FAILURES):
            self._serial.close()


def _claim(opened: Any, *, alone: bool) -> None:
    """Let no other program open the port, or let them again. Only programs that ask for it see
    pyserial's lock. Root may open the port all the same."""
    if termios is not None and getattr(opened, "fd", None) is not None:
        fcntl.ioctl(opened.fd, termios.TIOCEXCL if alone else termios.TIOCNXCL)


def _why_closed(port: str, error: Exception) -> str:
    number = error.args[0] if error.args and isinstance(error.args[0], int) else None
    if number in (errno.EACCES, errno.EPERM):
        group = _group(port)
        join = f": `sudo usermod -aG {group} $USER`, then log in anew" if group else ""
        return f"you may not read and write it{join}"
    if number in (errno.EBUSY, errno.EAGAIN):
        return "another program holds it (a terminal, ModemManager, another run of Thimble): end it"
    if number in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return "it is not there; is the board plugged in?"
    return (
        f"{error}; is the board plugged in, may you read and write the port, and does no other "
        "program hold it?"
    )


def _group(port: str) -> str:
    """The group that the port belongs to, '' where that is not known."""
    try:
        return Path(port).group()
    except (OSError, KeyError, NotImplementedError):
        return ""


def open_transport(port: str, baud: int) -> Transport:
    """Open `/dev/tty...`, `socket://host:port` or `rfc2217://host:port`. Raises LinkError."""
    if not port.startswith("socket://"):
        return SerialTransport(port, baud)
    try:
        address = urlsplit(port)
        host, number = address.hostname or "", address.port or 0
        return SocketTransport(socket.create_connection((host, number), _CONNECT_SECONDS))
    except (OSError, ValueError) as error:
        raise LinkError(f"cannot open {port}: {error}; is a serial server there?") from error


class BoardResetError(LinkError):
    """The board has been reset since HELLO: what was written before is gone."""

    def __init__(self) -> None:
        super().__init__("the board was reset in the middle: what it was to work on is gone")


class BoardFaultError(LinkError):
    """The board had a hard fault while it served a request; `fault` has the registers."""

    def __init__(self, fault: protocol.Fault) -> None:
        super().__init__(f"the board stopped with a fault: {fault}")
        self.fault = fault


class RefusedError(LinkError):
    """The board received the request undamaged, and refused it."""

    def __init__(self, request: Type, code: ErrorCode) -> None:
        reason = code.name.lower()
        super().__init__(f"the board refused the request {request.name}: bad {reason}")
        self.code = code


class Link:
    """Requests and their replies over a transport, one at a time.

    The sequence starts at a random number, so that the remains of an earlier link are not taken for
    an answer. `clock` returns seconds.
    """

    def __init__(
        self,
        transport: Transport,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.transport = transport
        """The line itself, for who speaks on it beside this link."""
        self._decoder = protocol.Decoder()
        self.sequence = 0
        """The number of the last request."""
        self._clock = clock
        self.timeout_seconds = timeout_seconds
        self.answer_seconds = 0.0
        """Seconds from the first sending of the last request to its answer."""

    def close(self) -> None:
        self.transport.close()

    def request(
        self, kind: Type, payload: bytes = b"", *, timeout_seconds: float | None = None
    ) -> bytes:
        """Send a request. Returns the payload of the board's reply.

        Raises BoardFaultError, BoardResetError, RefusedError, or LinkError if no good reply came in
        five attempts, or the board was silent for `timeout_seconds` in all: it is asked again at
        longer and longer intervals. A port that disappears is waited for.
        """
        self.sequence = self.sequence % _LAST_SEQUENCE + 1
        encoded = protocol.encode(Frame(self.sequence, kind, payload))
        patience = self.timeout_seconds if timeout_seconds is None else timeout_seconds
        asked = self._clock()
        wait, silent, damaged, why = min(_FIRST_WAIT_SECONDS, patience / 4), 0.0, 0, ""
        while silent < patience and damaged < _ATTEMPTS:
            try:
                self.transport.write(protocol.DELIMITER + encoded)
                reply, why = self._await(kind, self._clock() + wait)
                if reply is None:
                    reply = self._settled(kind)
            except LineLostError as error:
                reply, why = None, self._reopened(error)
            if reply is not None:
                self.answer_seconds = self._clock() - asked
                return reply
            if why == _SILENT:
                silent += wait
                wait = min(2 * wait, patience - silent)
            else:
                damaged += 1
        raise (SilentError if why == _SILENT else NoAnswerError)(
            f"no answer to {kind.name} within {patience:g} s, asked more than once: {why}; "
            "check the port, the speed, and that Thimble's firmware is on the board"
        )

    def _reopened(self, error: LineLostError) -> str:
        """Wait until the port is back, and return what happened. The request is sent again then: a
        board that was not reset knows it by its number."""
        error.reopen()
        self._decoder = protocol.Decoder()
        return str(error)

    def _settled(self, kind: Type) -> bytes | None:
        """Read until the line is quiet, so that no late answer is taken for one to come.

        The reply's payload if it was among what came.
        """
        until = self._clock() + _NOISE_SECONDS
        while self._clock() < until and (data := self.transport.read(_QUIET_SECONDS)):
            for raw in self._decoder.feed(data):
                with contextlib.suppress(protocol.FrameError):
                    reply = self._accepted(protocol.decode(raw), kind)
                    if reply is not None:
                        return reply
        return None

    def handshake(self, patience_seconds: float, model: int = 0) -> bytes:
        """The payload of HELLO, sent repeatedly, since a board that is starting loses bytes.

        HELLO chooses the model that all later requests refer to.
        """
        deadline = self._clock() + patience_seconds
        self.sequence = random.SystemRandom().randint(1, _LAST_SEQUENCE)
        hello = protocol.DELIMITER + protocol.encode(
            Frame(self.sequence, Type.HELLO, bytes((model,)) if model else b"")
        )
        heard = _SILENT
        while True:
            left = deadline - self._clock()
            try:
                self.transport.write(hello)
                until = self._clock() + min(_HANDSHAKE_STEP_SECONDS, max(left, 0.0))
                reply, why = self._await(Type.HELLO, until)
                while reply is None and self._clock() < until:  # no more than a few HELLOs a second
                    reply, _ = self._await(Type.HELLO, until)
            except LineLostError as error:
                reply, why = None, self._reopened(error)
            if reply is not None:
                return reply
            heard = heard if why == _SILENT else why
            if left <= 0:
                raise (SilentError if heard == _SILENT else NoAnswerError)(
                    f"the board does not answer ({heard}) in {patience_seconds:g} s; "
                    "check the port, the speed, and that Thimble's firmware is on the board "
                    "(`thimble flash` reads by the probe what a silent board waits for)"
                )

    def _await(self, kind: Type, deadline: float) -> tuple[bytes | None, str]:
        """The reply's payload, or None and the reason why the request is to be sent again."""
        while (left := deadline - self._clock()) > 0:
            why = ""
            for raw in self._decoder.feed(self.transport.read(left)):
                try:
                    frame = protocol.decode(raw)
                except protocol.FrameError as error:
                    why = str(error)
                    continue
                if frame.type == ERROR and _error_code(frame.payload).damaged_on_the_line:
                    code = _error_code(frame.payload).name.lower()
                    why = f"the board got a damaged frame ({code})"
                    continue
                reply = self._accepted(frame, kind)
                if reply is not None:
                    return reply, ""
            if why:
                return None, why
        return None, _SILENT

    def _accepted(self, frame: Frame, kind: Type) -> bytes | None:
        """The payload if `frame` answers the request at hand; raises if it says that it failed."""
        if frame.type == CRASHED:
            fault = protocol.parse_fault(frame.payload)
            if fault is not None:
                raise BoardFaultError(fault)
        if frame.type == ERROR and _error_code(frame.payload) is ErrorCode.VERSION:
            raise protocol.VersionError
        if frame.sequence != self.sequence:
            return None
        if frame.type == ERROR:
            code = _error_code(frame.payload)
            raise BoardResetError if code is ErrorCode.ORDER else RefusedError(kind, code)
        return frame.payload if frame.type == kind | REPLY else None


def _error_code(payload: bytes) -> ErrorCode:
    try:
        return ErrorCode(payload[0])
    except (IndexError, ValueError) as error:
        raise LinkError(f"the board sent an unknown error {payload.hex()}") from error

"""The serial port of a board, found by the USB identity of its adapter, now and after a
reconnect.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolchain.boards import Board
from toolchain.errors import InputError, LinkError
from toolchain.packages import lazy

if TYPE_CHECKING:
    from serial.tools import list_ports
else:
    list_ports = lazy("serial.tools.list_ports")

_POLL_SECONDS = 0.1


class NoPortError(InputError, LinkError):
    """No port is known to be the board's: it is not plugged in, is just coming back, or has no
    serial port of its own."""

    exit_code = InputError.exit_code


@dataclass(frozen=True)
class SerialPort:
    """A serial port of this machine.

    `usb_id` is vendor:product in lower case, '' for a port that is not a USB device. `interface` is
    configuration and interface, as in "1.2"; it distinguishes the ports of one adapter.
    """

    device: str
    usb_id: str
    serial_number: str = ""
    description: str = ""
    interface: str = ""

    def __str__(self) -> str:
        number = f", serial number {self.serial_number}" if self.serial_number else ""
        return f"{self.device} ({self.usb_id or 'no USB device'} {self.description}{number})"

    def is_again(self, other: SerialPort) -> bool:
        """Whether `other`, seen later, is the same port, perhaps under another name."""
        return bool(self.serial_number) and (
            (self.usb_id, self.serial_number, self.interface)
            == (other.usb_id, other.serial_number, other.interface)
        )


def attached_ports() -> tuple[SerialPort, ...]:
    """Every serial port of this machine."""
    untyped: Any = list_ports
    listed: Iterable[Any] = untyped.comports()
    return tuple(
        SerialPort(
            device=str(port.device),
            usb_id="" if port.vid is None else f"{port.vid:04x}:{port.pid:04x}",
            serial_number=port.serial_number or "",
            description=port.description or "",
            interface=str(port.location or "").partition(":")[2],
        )
        for port in sorted(listed, key=lambda port: str(port.device))
    )


def port_at(device: str, attached: Callable[[], tuple[SerialPort, ...]]) -> SerialPort | None:
    """The port of that name, which may be a link, such as those in /dev/serial/by-id."""
    there = os.path.realpath(device)
    return next((port for port in attached() if os.path.realpath(port.device) == there), None)


def find_port(
    board: Board,
    probe: str = "",
    attached: Callable[[], tuple[SerialPort, ...]] = attached_ports,
    patience_seconds: float = 0.0,
) -> str:
    """The device of the one port that has a USB identity of the board's file.

    `probe` is the serial number of the adapter, if there are several. Looks again for
    `patience_seconds`, because an adapter that was reset, as some tools do when they flash, is away
    for about a second. Raises InputError, with a list of the ports, if none (NoPortError) or more
    than one matches.
    """
    deadline = time.monotonic() + patience_seconds
    while True:
        try:
            return _fitting(board, probe, attached())
        except NoPortError:
            if not board.usb_ids or time.monotonic() >= deadline:
                raise
            time.sleep(_POLL_SECONDS)


def _fitting(board: Board, probe: str, ports: tuple[SerialPort, ...]) -> str:
    fitting = [
        port
        for port in ports
        if port.usb_id in board.usb_ids and (not probe or port.serial_number == probe)
    ]
    if len(fitting) == 1:
        return fitting[0].device
    usb = [port for port in ports if port.usb_id]
    if fitting:
        why = f"several ports could be that of {board.name}"
    elif not board.usb_ids:
        why = f"the serial port of {board.name} is not on the board, so that it cannot be found"
    else:
        number = f" and serial number {probe}" if probe else ""
        why = f"no port has the USB identity {' or '.join(board.usb_ids)}{number} of {board.name}"
    lines = [f"  {port}" for port in fitting or usb]
    name = "name one with --port (or THIMBLE_PORT)"
    kind = InputError if fitting else NoPortError
    raise kind("\n".join([f"{why}; {name}" + (":" if lines else ""), *lines]))

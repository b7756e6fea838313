"""Which serial port a board is at, by the USB identity of the adapter on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from serial.tools import list_ports

from toolchain.boards import Board
from toolchain.errors import InputError


@dataclass(frozen=True)
class SerialPort:
    """`usb_id` is vendor:product in lower case, '' for a port that is no USB device."""

    device: str
    usb_id: str
    serial_number: str = ""
    description: str = ""

    def __str__(self) -> str:
        number = f", serial number {self.serial_number}" if self.serial_number else ""
        return f"{self.device} ({self.usb_id or 'no USB device'} {self.description}{number})"


def attached_ports() -> tuple[SerialPort, ...]:
    """Every serial port of this machine."""
    list_them: Any = vars(list_ports)["comports"]
    listed: Iterable[Any] = list_them()
    return tuple(
        SerialPort(
            device=str(port.device),
            usb_id="" if port.vid is None else f"{port.vid:04x}:{port.pid:04x}",
            serial_number=port.serial_number or "",
            description=port.description or "",
        )
        for port in sorted(listed, key=lambda port: str(port.device))
    )


def find_port(
    board: Board,
    probe: str = "",
    attached: Callable[[], tuple[SerialPort, ...]] = attached_ports,
) -> str:
    """The device of the one port that has a USB identity of the board's file.

    `probe` is the serial number of the adapter, where there are several. Raises InputError listing
    what there is where none or more than one fits: none is guessed.
    """
    ports = attached()
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
    raise InputError("\n".join([f"{why}; {name}" + (":" if lines else ""), *lines]))

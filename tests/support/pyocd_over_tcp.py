"""pyocd with an ST-LINK behind a TCP port in place of USB: `pyocd_over_tcp.py PORT WORDS...`.

Only the class that moves bytes over USB is another; commands, target and flash code are pyocd's.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Sequence
from typing import Any

from pyocd.__main__ import PyOCDTool  # type: ignore[import-not-found]
from pyocd.probe.stlink import usb  # type: ignore[import-not-found]


class OverTcp:
    """What pyocd's `STLinkUSBInterface` offers, by the stlink-server's messages."""

    vendor_name, product_name, version_name = "STMicroelectronics", "STM32 STLink", "V2-1"
    max_packet_size = 64
    is_open = False

    def __init__(self, serial_number: str, line: socket.socket) -> None:
        self.serial_number, self._line = serial_number, line
        self._coming = line.makefile("rb")

    def open(self) -> None:
        self.is_open = True

    def close(self) -> None:
        self.is_open = False

    def transfer(
        self,
        cmd: Sequence[int],
        writeData: Sequence[int] | None = None,  # noqa: N803 (pyocd's name)
        readSize: int | None = None,  # noqa: N803
        timeout: int = 1000,
    ) -> bytearray | None:
        data = bytes(writeData or ())
        size = len(data) if writeData is not None else readSize or 0
        head = struct.pack("<B3xI16sB3xI", 5, 9, bytes(cmd), writeData is None, size)
        self._line.sendall(head + data)
        self._coming.read(4)
        return None if readSize is None else bytearray(self._coming.read(readSize))


def found(port: int) -> list[Any]:
    line = socket.create_connection(("127.0.0.1", port))
    coming = line.makefile("rb")
    line.sendall(b"\x01")
    if not int.from_bytes(coming.read(4), "little"):
        return []
    line.sendall(b"\x02" + bytes(7))
    serial = coming.read(45)[8:40].rstrip(b"\0").decode()
    return [OverTcp(serial, line)]


if __name__ == "__main__":
    port = int(sys.argv[1])
    usb.STLinkUSBInterface.get_all_connected_devices = classmethod(lambda cls: found(port))
    sys.exit(PyOCDTool().run(sys.argv[2:]))

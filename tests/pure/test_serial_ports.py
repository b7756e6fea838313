"""Serial devices that may not be opened, are held by others or go away: each is a sentence."""

from __future__ import annotations

import contextlib
import errno
import grp
import os
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import serial

from toolchain.device.link import Link, SerialTransport, open_transport
from toolchain.device.ports import SerialPort, port_at
from toolchain.device.protocol import Type
from toolchain.errors import LinkError

pytestmark = pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs pseudo-terminals")
NOBODY = 65534


@contextlib.contextmanager
def terminal() -> Iterator[tuple[int, str]]:
    master, slave = os.openpty()
    tty.setraw(slave)
    name = os.ttyname(slave)
    os.close(slave)
    try:
        yield master, name
    finally:
        with contextlib.suppress(OSError):
            os.close(master)


def as_another_user(act: Callable[[], str]) -> str:
    """What `act` gives in a child process, without special rights where these tests are root's."""
    coming, going = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(going, act().encode())
        finally:
            os._exit(0)
    os.close(going)
    os.waitpid(child, 0)
    said = os.read(coming, 4096).decode()
    os.close(coming)
    return said


def opened(name: str) -> str:
    try:
        SerialTransport(name, 115_200).close()
    except LinkError as error:
        return str(error)
    return "opened"


def opened_plainly(name: str) -> str:
    """By a program that asks for no lock."""
    try:
        os.open(name, os.O_RDWR | os.O_NOCTTY)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "opened"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolchain.device.link._SETTLE_SECONDS", 0.4)
    monkeypatch.setattr("toolchain.device.link._RETURN_SECONDS", 0.6)


def test_a_port_that_may_not_be_used_names_the_group_to_join() -> None:
    with terminal() as (_, name):
        Path(name).chmod(0)
        group = grp.getgrgid(Path(name).stat().st_gid).gr_name
        said = as_another_user(lambda: opened(name))
    assert f"usermod -aG {group}" in said and "Errno" not in said, said


def test_a_port_is_held_alone_and_let_go() -> None:
    with terminal() as (_, name):
        Path(name).chmod(0o666)
        transport = SerialTransport(name, 115_200)
        start = time.monotonic()
        with pytest.raises(LinkError, match="another program holds it"):
            SerialTransport(name, 115_200)
        assert time.monotonic() - start > 0.3  # it may be a program that only looks at it
        assert as_another_user(lambda: opened_plainly(name)) == "EBUSY"
        transport.close()
        assert as_another_user(lambda: opened(name)) == "opened"
        SerialTransport(name, 115_200).close()


def test_a_port_that_is_not_there_is_waited_for_a_moment() -> None:
    with pytest.raises(LinkError, match=r"/dev/ttyNONE.*not there; is the board plugged in"):
        open_transport("/dev/ttyNONE", 115_200)


def test_a_speed_that_cannot_be_is_told_at_once() -> None:
    with terminal() as (_, name), pytest.raises(LinkError, match="cannot open the serial port"):
        SerialTransport(name, -1)


def test_every_failure_of_a_pulled_port_is_a_sentence() -> None:
    """Reading and writing, then opening, of a device that has gone for good."""
    for act in ("read", "write", "request"):
        with terminal() as (master, name):
            transport = SerialTransport(name, 115_200)
            os.close(master)
            with pytest.raises(LinkError) as told:
                if act == "read":
                    transport.read(0.1)
                elif act == "write":
                    transport.write(b"x")
                    transport.read(0.1)
                else:
                    Link(transport).request(Type.MEMORY)
            assert name in str(told.value)
            transport.close()
            transport.close()


def test_an_adapter_that_takes_nothing_does_not_hang_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Draining such a port has no end (cdc-acm counts what the adapter has not taken)."""
    monkeypatch.setattr("toolchain.device.link._WRITE_SECONDS", 0.5)
    with terminal() as (_, name):
        transport = SerialTransport(name, 115_200)
        with pytest.raises(LinkError, match="taken no bytes for"):
            transport.write(bytes(1 << 20))
        transport.close()


def test_links_to_a_port_are_the_port(tmp_path: Path) -> None:
    with terminal() as (_, name):
        link = tmp_path / "usb-STMicroelectronics_STM32_STLink_066DFF-if02"
        link.symlink_to(name)
        port = SerialPort(name, "0483:374b", "066DFF", "STM32 STLink", "1.2")
        assert port_at(str(link), lambda: (port,)) == port
        assert port_at(name, lambda: ()) is None


def test_the_ports_of_one_adapter_are_told_apart() -> None:
    first = SerialPort("/dev/ttyACM0", "0483:3753", "A", "STLINK-V3", "1.1")
    again = SerialPort("/dev/ttyACM4", "0483:3753", "A", "STLINK-V3", "1.1")
    second = SerialPort("/dev/ttyACM1", "0483:3753", "A", "STLINK-V3", "1.3")
    plain = SerialPort("/dev/ttyS0", "")
    assert first.is_again(again) and not first.is_again(second) and not plain.is_again(plain)


def test_pyserials_errors_are_those_that_are_caught() -> None:
    """Its own derive from OSError; what it lets through besides is termios.error."""
    assert issubclass(serial.SerialException, OSError)
    assert issubclass(serial.SerialTimeoutException, serial.SerialException)
    assert issubclass(serial.PortNotOpenError, serial.SerialException)

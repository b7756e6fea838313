"""A board's port is found by its USB identity, and never guessed."""

from __future__ import annotations

import pytest

from toolchain.boards import board
from toolchain.device.ports import NoPortError, SerialPort, attached_ports, find_port
from toolchain.errors import InputError, LinkError

NUCLEO = SerialPort("/dev/ttyACM0", "0483:374b", "066DFF", "STM32 STLink")
SECOND = SerialPort("/dev/ttyACM1", "0483:374b", "0670AA", "STM32 STLink")
CABLE = SerialPort("/dev/ttyUSB0", "0403:6001", "A5", "FT232R")
PLAIN = SerialPort("/dev/ttyS0", "")


def test_the_one_that_fits_is_taken() -> None:
    assert find_port(board("nucleo-f446re"), attached=lambda: (PLAIN, NUCLEO, CABLE)) == (
        "/dev/ttyACM0"
    )
    both = (NUCLEO, SECOND)
    assert find_port(board("nucleo-f446re"), "0670AA", attached=lambda: both) == "/dev/ttyACM1"


def test_several_are_listed_and_none_is_guessed() -> None:
    with pytest.raises(InputError, match="several ports") as caught:
        find_port(board("nucleo-f446re"), attached=lambda: (NUCLEO, SECOND, CABLE))
    said = str(caught.value)
    assert "/dev/ttyACM0" in said and "0670AA" in said and "ttyUSB0" not in said


def test_none_says_what_there_is() -> None:
    with pytest.raises(InputError, match="0483:374b") as caught:
        find_port(board("nucleo-f446re"), attached=lambda: (PLAIN, CABLE))
    assert "ttyUSB0" in str(caught.value) and "ttyS0" not in str(caught.value)
    once = iter([(NUCLEO,)])  # it is not waited for
    with pytest.raises(NoPortError, match="not on the board"):
        find_port(board("f4-discovery"), "", lambda: next(once), patience_seconds=300)
    with pytest.raises(InputError, match="serial number X"):
        find_port(board("nucleo-f446re"), "X", attached=lambda: (NUCLEO,))


def test_a_port_that_is_just_coming_back_is_waited_for() -> None:
    """A probe that was reset when it flashed; several that fit are no reason to wait."""
    looks = iter([(PLAIN,), (), (CABLE,), (PLAIN, NUCLEO)])
    found = find_port(board("nucleo-f446re"), "066DFF", lambda: next(looks), patience_seconds=300)
    assert found == "/dev/ttyACM0" and not list(looks)
    with pytest.raises(NoPortError) as told:
        find_port(board("nucleo-f446re"), attached=lambda: (CABLE,), patience_seconds=0.2)
    assert isinstance(told.value, LinkError) and told.value.exit_code == 2
    once = iter([(NUCLEO, SECOND)])
    with pytest.raises(InputError, match="several"):
        find_port(board("nucleo-f446re"), attached=lambda: next(once), patience_seconds=300)


def test_an_st_link_without_mass_storage_is_one_too() -> None:
    """The identities that its firmware updater can give it (pyocd's and openocd's lists)."""
    for name, ids in {
        "nucleo-f446re": ("374b", "3752"),
        "nucleo-h7a3zi-q": ("374e", "3754"),
    }.items():
        for usb_id in ids:
            port = SerialPort("/dev/ttyACM0", f"0483:{usb_id}", "066DFF")
            assert find_port(board(name), attached=lambda port=port: (port,)) == port.device


def test_this_machines_ports_can_be_listed() -> None:
    assert all(port.device for port in attached_ports())

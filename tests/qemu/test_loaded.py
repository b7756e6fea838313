"""An image that a debug probe loads into RAM survives RESET and faults: the start-up runs again.

An STM32N657's RESET ended in SYSRESETREQ, by which the boot ROM takes the RAM in development boot
(boards/chips/stm32n657.toml; Zephyr's boards/st/nucleo_n657x0_q/doc/index.rst, "dev boot"). The
machine here is an MPS3-AN547, whose core is the same.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from toolchain.bench.probe_model import (
    OVERFLOW,
    UNDEFINED,
    probe_firmware,
    probe_input,
    probe_output,
)
from toolchain.boards import board
from toolchain.device.compiler import find_tool
from toolchain.device.firmware import Firmware
from toolchain.device.link import BoardFaultError
from toolchain.device.session import Session, open_board

pytestmark = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc"
)
SYSRESETREQ = "05fa0004"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    machine = board("mps3-an547")
    loaded = board("nucleo-n657x0-q").defines["THIMBLE_LOADED"]
    target = replace(machine, defines={**machine.defines, "THIMBLE_LOADED": loaded})
    return probe_firmware(target, tmp_path_factory.mktemp("loaded"))


@pytest.fixture
def session(built: Firmware) -> Iterator[Session]:
    with open_board(built) as opened:
        yield opened


def runs(session: Session) -> None:
    data = probe_input(np.random.default_rng(1))
    assert np.array_equal(session.run([data]).outputs["probe/out:0"], probe_output(data))


def test_the_chip_is_not_reset(built: Firmware) -> None:
    text = subprocess.run(
        [find_tool("objdump"), "-d", str(built.elf)], capture_output=True, text=True, check=True
    ).stdout
    assert "thimble_system_reset" in text and SYSRESETREQ not in text


def test_reset_starts_the_firmware_again(session: Session) -> None:
    runs(session)
    used = session.memory_use().arena_bytes
    session.reset()
    assert session.memory_use().arena_bytes < used  # painted anew
    runs(session)
    session.reset()
    runs(session)


@pytest.mark.parametrize("fault", [UNDEFINED, OVERFLOW])
def test_after_a_fault_the_firmware_starts_again(session: Session, fault: int) -> None:
    """From the exception to thread mode; the record of the fault survives."""
    for _ in range(2):
        with pytest.raises(BoardFaultError):
            session.run([probe_input(np.random.default_rng(2), fault)])
        session.greet()
        assert session.last_fault() is not None
        runs(session)

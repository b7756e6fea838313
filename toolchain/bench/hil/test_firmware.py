"""Faults, another firmware, memory: what a board reports of itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolchain.bench.bench_file import BenchBoard
from toolchain.bench.echo import echo_firmware
from toolchain.bench.probe_model import (
    FAILS,
    OVERFLOW,
    UNDEFINED,
    probe_firmware,
    probe_input,
    probe_output,
)
from toolchain.bench.pytest_plugin import StartFirmware
from toolchain.device.link import BoardFaultError
from toolchain.device.session import Session
from toolchain.errors import LinkError


@pytest.fixture
def probe(board: BenchBoard, started: StartFirmware, tmp_path: Path) -> Session:
    return started(probe_firmware(board.board, tmp_path))


@pytest.mark.parametrize(
    ("how", "said"), [(UNDEFINED, "undefined instruction"), (OVERFLOW, "stack overflowed")]
)
def test_a_fault_is_located_and_survived(
    board: BenchBoard, probe: Session, how: int, said: str
) -> None:
    rng = np.random.default_rng(3)
    with pytest.raises(BoardFaultError, match="operator 1") as caught:
        probe.run([probe_input(rng, how)])
    assert said in str(caught.value)
    assert probe.last_fault() == caught.value.fault
    data = probe_input(rng)
    np.testing.assert_array_equal(probe.run([data]).outputs["probe/out:0"], probe_output(data))


def test_a_failing_operator_is_told(board: BenchBoard, probe: Session) -> None:
    with pytest.raises(LinkError, match="status -3"):
        probe.run([probe_input(np.random.default_rng(3), FAILS)])


def test_another_firmware_is_refused(
    board: BenchBoard, started: StartFirmware, tmp_path: Path
) -> None:
    """The line is that of one firmware; the session expects another."""
    session = started(echo_firmware(board.name, tmp_path / "echo"))
    other = probe_firmware(board.board, tmp_path / "probe")
    with pytest.raises(LinkError, match="runs another firmware"):
        Session(other, session.link.transport, None)


def test_a_pulled_cable_is_an_error_and_no_hang(
    board: BenchBoard, started: StartFirmware, tmp_path: Path
) -> None:
    firmware = echo_firmware(board.name, tmp_path / "echo")
    session = started(firmware)
    session.link.close()
    with pytest.raises(LinkError):
        session.run([np.zeros((1, 512), np.int8)])
    session.close()
    again = started(firmware)
    assert again.run([np.zeros((1, 512), np.int8)]).outputs["output"].any() == np.False_

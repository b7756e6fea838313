"""The emulator's serial port over TCP, as on systems where a child inherits no descriptors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from toolchain.bench.probe_model import probe_firmware, probe_input, probe_output
from toolchain.boards import board
from toolchain.device.qemu import Machine
from toolchain.device.session import Session
from toolchain.errors import LinkError


def test_a_network_runs_over_tcp(tmp_path: Path) -> None:
    target = board("netduinoplus2")
    firmware = probe_firmware(target, tmp_path / "out")
    data = probe_input(np.random.default_rng(1))
    with Machine(target, firmware.elf, over_tcp=True) as machine:
        done = Session(firmware, machine.transport, machine).run({"probe/in:0": data})
    np.testing.assert_array_equal(done.outputs["probe/out:0"], probe_output(data))


def test_an_emulator_that_ends_first_says_why(tmp_path: Path) -> None:
    absent = tmp_path / "absent.elf"
    with (
        pytest.raises(LinkError, match=r"ended with code .*absent\.elf"),
        Machine(board("netduinoplus2"), absent, over_tcp=True) as machine,
    ):
        machine.transport.read(2.0)
        machine.transport.read(2.0)

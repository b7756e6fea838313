"""A fixed share of the fuzzer's frames: each is answered, and the firmware goes on right."""

from __future__ import annotations

import shutil

import pytest

from benchmarks.fuzz.__main__ import fuzz

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("board", ["netduinoplus2", "mps3-an547"])
def test_every_frame_is_answered(board: str) -> None:
    tally = fuzz("frames", seed=1, cases=800, board=board)
    assert not tally.failed, tally.findings
    assert {"RUN", "PATTERN", "RESET", "EXIT", "HELLO"} <= set(tally.reasons)

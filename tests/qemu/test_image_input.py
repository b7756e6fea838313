"""A camera's frame to a model's input on emulated cores: NumPy's bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.seen import check_seen
from toolchain.boards import board

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("name", ["netduinoplus2", "mps3-an547"])
@pytest.mark.parametrize("case", ["smaller", "grey", "nearest"])
def test_a_frame_gives_the_reference_s_input(case: str, name: str, tmp_path: Path) -> None:
    check_seen(board(name), case, tmp_path)

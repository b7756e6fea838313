"""Sound pushed into a model's library on emulated cores: features and outputs are NumPy's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.heard import cases, check_heard
from tests.support.long import mostly_long
from toolchain.boards import board

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)


@pytest.mark.parametrize("name", mostly_long(["netduinoplus2", "mps3-an547"], ["mps3-an547"]))
@pytest.mark.parametrize("case", sorted(cases()))
def test_sound_gives_the_reference_s_features_and_outputs(
    case: str, name: str, tmp_path: Path
) -> None:
    check_heard(board(name), *cases()[case], tmp_path)

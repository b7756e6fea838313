"""A camera's frame to a model's input by C: NumPy's bytes, under the sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.seen import SEEN, check_seen
from toolchain.boards import board


@pytest.mark.parametrize("case", sorted(SEEN))
def test_a_frame_gives_the_reference_s_input(case: str, tmp_path: Path) -> None:
    check_seen(board("host"), case, tmp_path)

"""Sound pushed into a model's library: features and outputs are NumPy's, under the sanitizers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.heard import cases, check_heard
from toolchain.boards import board


@pytest.mark.parametrize("case", sorted(cases()))
def test_sound_gives_the_reference_s_features_and_outputs(case: str, tmp_path: Path) -> None:
    check_heard(board("host"), *cases()[case], tmp_path)

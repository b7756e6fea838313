"""Files whose tensors are called as the toolchain calls what it makes of them, to the last byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.cli import run

HOSTILE = Path(__file__).resolve().parents[2].parent / "shared" / "hostile2"
NAMED = (
    *("collide", "concat_part0", "concat_part1_keyerror", "concat_weights1_exit70"),
    *("dead_y0_invalidgraph", "names_exc_4", "names_exc_5", "names_exc_6", "nasty"),
)

pytestmark = pytest.mark.skipif(not HOSTILE.is_dir(), reason=f"no files at {HOSTILE}")


@pytest.mark.parametrize("board", ["host", "netduinoplus2"])
@pytest.mark.parametrize("name", NAMED)
def test_names_change_no_byte(name: str, board: str, capfd: pytest.CaptureFixture[str]) -> None:
    file = HOSTILE / f"{name}.tflite"
    assert run(["verify", str(file), "--board", board, "--runs", "2"]) == 0
    said = capfd.readouterr()
    assert "Traceback" not in said.out + said.err
    assert ", 0 differ" in " ".join(said.out.split())

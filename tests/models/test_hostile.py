"""Model files that once broke something: each is computed exactly, or refused in one clear message.

A number is never wrong, a buffer never overrun, a traceback never seen. The files lie beside the
checkout, in `../shared/hostile`; its README says what each of them did.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from toolchain.cli import run

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "hostile"
FILES = sorted(
    path.name for path in FOLDER.glob("*") if path.suffix in (".tflite", ".onnx") and path.is_file()
)


@pytest.mark.skipif(not FILES, reason="there are no hostile files beside this checkout")
@pytest.mark.parametrize("name", FILES)
def test_exact_or_refused(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    code = run(["verify", str(FOLDER / name), "--board", "host", "--runs", "20", "--float"])
    printed = capfd.readouterr()
    assert code in (0, 2), printed
    if code == 0:
        assert ", 0 differ" in " ".join(printed.out.split())
        return
    assert printed.err.count("error:") == 1
    message = printed.err.split("error:", 1)[1]
    assert "Traceback" not in printed.err
    assert len(message.strip().splitlines()) <= 2, message
    names = ("operator", "tensor", "output", "reference", "'")
    assert any(name in message for name in names), message

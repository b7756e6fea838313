"""What other programs print is taken whatever bytes it has."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from toolchain.device.doctor import _program
from toolchain.edgetpu.run.interpreters import _end, _fields
from toolchain.resources import RUNTIME_C

PACKAGE = RUNTIME_C.parent / "toolchain"


@pytest.mark.slow
def test_no_text_of_a_program_is_decoded_strictly() -> None:
    strict, seen = [], 0
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            named = {word.arg for word in node.keywords}
            if "text" in named and {"capture_output", "stdout", "stderr"} & named:
                seen += 1
                strict += [] if "errors" in named else [f"{file.name}:{node.lineno}"]
    assert seen > 5 and strict == []


def test_a_version_in_bytes_that_are_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\nprintf '1.0 \\377\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert _program("tool") == "1.0 \ufffd"


def test_lines_of_a_stick_s_library_beside_the_trials_own() -> None:
    said = '{"step": "open"}\n{\n{"a": 1e999}\n' + '{"a":' * 9000 + '\n{"done": true}\n'
    assert _fields(said) == [{"step": "open"}, {"done": True}]
    assert _end(-9, 1) == "it died of SIGKILL" and _end(-40, 1) == "it died of signal 40"

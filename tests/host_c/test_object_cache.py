"""Compiled files are kept, and made anew where anything that they are made from has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from toolchain.device import compiler
from toolchain.device.compiler import CALLS_FLAG, Unit, compile_units, find_host_compiler
from toolchain.device.stack import tells_calls


def test_a_header_beside_the_source_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source, header = tmp_path / "source" / "one.c", tmp_path / "source" / "one.h"
    source.parent.mkdir()
    source.write_text('#include "one.h"\nint one = ONE;\n')
    objects = []
    for value in (1, 1, 2):
        header.write_text(f"#define ONE {value}\n")
        objects += compile_units([Unit(source, ("-O1",), ())], gcc=find_host_compiler())
    assert objects[0] == objects[1] != objects[2]
    assert objects[0].read_bytes() != objects[2].read_bytes()


def test_an_older_gcc_is_not_asked_for_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "one.c"
    source.write_text("int one(void) { return 1; }\n")
    unit = Unit(source, ("-O1", CALLS_FLAG), ())
    assert tells_calls(compile_units([unit], gcc=find_host_compiler()))
    monkeypatch.setattr(compiler, "_tells_calls", lambda gcc: False)
    assert not tells_calls(compile_units([unit], gcc=find_host_compiler()))


def test_what_is_old_is_looked_for_once_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "one.c"

    def is_dropped() -> bool:
        """Whether what a killed compiler left goes when another object is made."""
        left = next((tmp_path / "thimble").rglob("*.o")).with_suffix(".tmp")
        left.touch()
        os.utime(left, (0, 0))
        source.write_text(f"{source.read_text()}\n")
        compile_units([Unit(source, (), ())], gcc=find_host_compiler())
        return not left.exists()

    source.write_text("int one;\n")
    compile_units([Unit(source, (), ())], gcc=find_host_compiler())
    assert not is_dropped()
    (stamp,) = (tmp_path / "thimble").rglob("pruned")
    os.utime(stamp, (0, 0))
    assert is_dropped()
    assert not is_dropped()

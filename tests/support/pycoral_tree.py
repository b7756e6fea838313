"""A package `pycoral` made of pycoral's own Python files, unchanged, over the stand-in for its C++.

The files are read from a clone (a bare one will do) that THIMBLE_PYCORAL_SOURCE names; nothing of
it is kept.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

VARIABLE = "THIMBLE_PYCORAL_SOURCE"
NEWEST = "46f06c8dd9c5231e5cb27910d4e1fcbdcf1be8f0"
GROUPER = "release-grouper"
FROGFISH = "release-frogfish"
_FILES = ("__init__", "pipeline/__init__", "pipeline/pipelined_model_runner")
_FILES += ("utils/__init__", "utils/edgetpu")
_WRAPPER = "from tests.support.pywrap_coral import *\n"
_FIRST_WRAPPER = (
    "from tests.support.pywrap_coral import FirstRunnerWrapper as PipelinedModelRunnerWrapper\n"
)
_INTERPRETER = """\
import os

from ai_edge_litert.interpreter import *
from ai_edge_litert import interpreter as _litert
from tests.support import pywrap_coral


class Interpreter(_litert.Interpreter):
    def __init__(self, *arguments, **named):
        reference = _litert.OpResolverType.BUILTIN_REF
        super().__init__(*arguments, experimental_op_resolver_type=reference, **named)
        pywrap_coral.interpreters[self._native_handle()] = self


def load_delegate(library, options):
    assert library == "libedgetpu.so.1"
    return _litert.load_delegate(os.environ["THIMBLE_STICKS_LIBRARY"], options)
"""


def source_of(path: str, commit: str = NEWEST) -> bytes:
    """A file of pycoral's repository. Skips where the clone is absent."""
    place = os.environ.get(VARIABLE)
    if not place:
        pytest.skip(f"{VARIABLE} names no clone of google-coral/pycoral")
    done = subprocess.run(
        ["git", "-C", place, "show", f"{commit}:{path}"], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"{place} has no {path} at {commit}: {done.stderr.decode().strip()}")
    return done.stdout


def write_tree(folder: Path, commit: str) -> Path:
    """A folder for the import path: pycoral at a commit, and a `tflite_runtime` that is LiteRT."""
    package, runtime = folder / "pycoral", folder / "tflite_runtime"
    for name in _FILES:
        file = package / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(source_of(f"pycoral/{name}.py", commit))
    (package / "pybind").mkdir()
    (package / "pybind" / "__init__.py").touch()
    wrapper = _WRAPPER + (_FIRST_WRAPPER if commit == FROGFISH else "")
    (package / "pybind" / "_pywrap_coral.py").write_text(wrapper)
    runtime.mkdir()
    (runtime / "__init__.py").write_text('__version__ = "2.5.0"\n')
    (runtime / "interpreter.py").write_text(_INTERPRETER)
    return folder

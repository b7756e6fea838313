"""Cases of a sweep: combinations of model, board and options, and the key of each.

A result depends on nothing beside its key: the bytes of the model file and its name, the work, the
board's files, the options, and the tool: Thimble's own files, the compiler, CMSIS-NN, the packages
that plan or judge, and the known latencies of the board's kernels.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from toolchain import ops
from toolchain.boards import board_files
from toolchain.cost.database import Database
from toolchain.deployment.measurements import current_build, known_rows
from toolchain.errors import MissingToolError
from toolchain.files import files_digest
from toolchain.planning.options import PlanOptions
from toolchain.resources import BOARDS, RUNTIME_C, TEMPLATES
from toolchain.version import __version__

WORKS = ("plan", "compile", "verify", "profile")
_PACKAGES = {
    "plan": ("numpy", "ortools"),
    "verify": ("ai-edge-litert", "numpy", "onnx", "onnxruntime", "ortools", "tflite-micro"),
}
"""Packages on which results depend; `plan` stands for all but `verify`."""
_SUFFIXES = (".py", ".json", ".c", ".h", ".hpp", ".j2", ".toml", ".S", ".ld")


@dataclass(frozen=True)
class Case:
    """One task.

    file     the model, as the sweep names it; `sha256` is its content's
    words    the options that differ from a plan's defaults, by name as in a sweep's file
    runs     of `verify` and `profile`; None: the command's default
    tool     what else the result depends on (`tool_of`)
    """

    do: str
    file: str
    sha256: str
    board: str
    options: PlanOptions
    words: tuple[tuple[str, str], ...]
    runs: int | None
    seed: int
    tool: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """The command of the case: equal for cases of two sweeps that differ in the model's bytes
        or the tool."""
        more = [f"--{name} {value}" for name, value in self.words]
        return " ".join([self.do, self.file, "--board", self.board, *more])

    @property
    def key(self) -> str:
        """SHA-256 over all that the result depends on, in hexadecimal."""
        runs = (self.runs, self.seed) if self.do in ("verify", "profile") else None
        file = Path(self.file).name  # the firmware bears it
        parts: list[Any] = [self.do, file, self.sha256, self.board, repr(self.options), runs]
        return hashlib.sha256(json.dumps([*parts, self.tool]).encode()).hexdigest()


def check_tool(case: Case) -> None:
    """Check this machine's tools. Raises MissingToolError, naming the difference, if it would
    compute something else than the machine that planned the sweep.
    """
    here, wanted = tool_of(case.board, case.do), dict(case.tool)
    for name, value in wanted.items():
        if here.get(name) != value:
            raise MissingToolError(
                f"this worker has another {name} ({here.get(name) or 'none'}) than the sweep "
                f"({value or 'none'}): install the same there"
            )


def tool_of(board: str, do: str) -> Mapping[str, str]:
    """Versions and hashes, by name, of all that results depend on apart from model and options."""
    build = current_build()
    packages = _PACKAGES.get(do, _PACKAGES["plan"])
    return {
        "Thimble": _thimble(),
        f"file of {board}": _board(board),
        "compiler": "" if build is None else build.compiler,
        "CMSIS-NN": "" if build is None else build.cmsis_nn,
        "known latencies (thimble cost)": "" if build is None else _latencies(board),
        **{name: _version(name) for name in packages},
    }


def _latencies(board: str) -> str:
    build = current_build()
    assert build is not None
    with Database() as database:
        rows = known_rows(database, board, build)
    text = "\n".join(row.to_json() for row in rows)
    return hashlib.sha256(text.encode()).hexdigest()[:16] if rows else ""


def _board(name: str) -> str:
    """A hash of the board's files. A user's board may have changed since the last case."""
    return files_digest(board_files(name))[:16]


@cache
def _thimble() -> str:
    """The version, and a hash of all files of Thimble, which do not change."""
    return f"{__version__}+{files_digest(_files())[:12]}"


def _files() -> Iterator[Path]:
    package = Path(str(ops.__file__)).parents[1]
    folders = (package, TEMPLATES, RUNTIME_C, BOARDS)
    files = {file for folder in folders for file in folder.rglob("*") if file.suffix in _SUFFIXES}
    yield from sorted(files)


@cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""

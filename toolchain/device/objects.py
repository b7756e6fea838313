"""Compiling C files to objects, each once per content and flags: the cache of every build."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from toolchain.cmsis_nn import cache_folder
from toolchain.errors import MissingToolError, ThimbleError


class CompileError(ThimbleError):
    """The C compiler refused a file: a defect of Thimble or of the named compiler's set-up."""

    exit_code = 1


@dataclass(frozen=True)
class Unit:
    """A C file, the flags, and the `-I` and `-isystem` folders to compile it with."""

    source: Path
    flags: tuple[str, ...]
    includes: tuple[Path, ...]
    system_includes: tuple[Path, ...] = ()


@cache
def compiler_identity(compiler: str) -> str:
    """What `compiler --version` says. Raises MissingToolError where it is not installed."""
    path = shutil.which(compiler)
    if path is None:
        raise MissingToolError(f"{compiler} is not installed; `thimble doctor` says how to get it")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return f"{path}\n{done.stdout}"


def compile_object(compiler: str, unit: Unit, target: Path) -> None:
    """Compile one file. Raises CompileError with the compiler's own message."""
    folders = [f"-I{folder}" for folder in unit.includes]
    for path in unit.system_includes:
        folders += ["-isystem", str(path)]
    run_tool([compiler, *unit.flags, *folders, "-c", str(unit.source), "-o", str(target)])


def run_tool(command: Sequence[str]) -> str:
    """Standard output of a build tool. Raises CompileError, MissingToolError."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise MissingToolError(
            f"{command[0]} is not installed; `thimble doctor` says how to get it"
        ) from None
    if done.returncode:
        raise CompileError(f"{command[0]} failed:\n{(done.stderr or done.stdout).strip()}")
    return done.stdout


def cached_objects(
    compiler: str, units: Sequence[Unit], folder: Path | None = None
) -> tuple[Path, ...]:
    """An object file for each unit, compiled in parallel where `folder` has none.

    `folder`: the user's cache by default; the build's own folder for code that never comes again.

    The key covers the compiler, the flags, the source and every header in the include folders.
    Two processes may fill the cache at once.
    """
    identity = compiler_identity(compiler)
    store = folder or cache_folder() / "objects"
    store.mkdir(parents=True, exist_ok=True)
    used = {path for unit in units for path in (*unit.includes, *unit.system_includes)}
    headers = {path: _headers_digest(path) for path in used}

    def build(unit: Unit) -> Path:
        key = hashlib.sha256(identity.encode())
        key.update("\0".join(unit.flags).encode())
        key.update(unit.source.name.encode() + b"\0" + unit.source.read_bytes())
        for include in (*unit.includes, *unit.system_includes):
            key.update(headers[include].encode())
        target = store / f"{unit.source.stem}-{key.hexdigest()[:32]}.o"
        if not target.exists():
            handle, scratch = tempfile.mkstemp(dir=store, suffix=".o")
            os.close(handle)
            try:
                compile_object(compiler, unit, Path(scratch))
                Path(scratch).rename(target)
            finally:
                Path(scratch).unlink(missing_ok=True)
        return target

    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return tuple(pool.map(build, units))


def _headers_digest(folder: Path) -> str:
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.h")):
        total.update(path.relative_to(folder).as_posix().encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()

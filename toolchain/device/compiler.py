"""The cross compiler. Objects are compiled in parallel and cached by content in the user's
cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from toolchain.errors import (
    DoesNotFitError,
    InputError,
    MissingToolError,
    ResultError,
    ThimbleError,
)
from toolchain.kernels.cmsis_nn import cache_folder
from toolchain.progress import Report, silent

CALLS_FLAG, CALLS_SUFFIX = "-fcallgraph-info=su", ".ci"
"""With the flag gcc writes frames and calls of each function; they are kept beside the object. An
older gcc, which does not know it, is not given it."""
_FIRST_WITH_CALLS = 10
_UNFINISHED = ".tmp"
_PRUNED = "pruned"
"""Beside the objects: an empty file as old as their last pruning."""
_PREFIX = "arm-none-eabi-"
_REMEDY = (
    "run: apt-get install -y --no-install-recommends gcc-arm-none-eabi libnewlib-arm-none-eabi"
)
_ERROR_LINES = 12
_CACHE_LIMIT_BYTES = 400_000_000
_OLD_SECONDS = 3600
_NO_ROOM = re.compile("No space left on device|Disk quota exceeded|Read-only file system")
_OVERFLOW = re.compile(r"region `(?P<region>\w+)' overflowed by (?P<bytes>\d+) bytes")


class BuildError(ResultError):
    """The compiler or linker reported an error."""


@dataclass(frozen=True)
class Unit:
    """One translation unit. `suffix` ends the object's name (the linker script matches it).

    Warnings in headers of `system_includes` (`-isystem`) are ignored.
    """

    source: Path
    flags: tuple[str, ...]
    includes: tuple[Path, ...]
    suffix: str = ".o"
    system_includes: tuple[Path, ...] = ()


def find_tool(name: str) -> str:
    """The path of `arm-none-eabi-<name>`. Raises MissingToolError saying how to install it."""
    program = shutil.which(_PREFIX + name)
    if program is None:
        raise MissingToolError(f"{_PREFIX}{name} is not installed; {_REMEDY}")
    return program


@cache
def _version(gcc: str) -> str:
    return _run([gcc, "--version"]).splitlines()[0]


@cache
def _tells_calls(gcc: str) -> bool:
    """Whether a compiler knows CALLS_FLAG: gcc does from 10 on."""
    return int(_run([gcc, "-dumpversion"]).partition(".")[0]) >= _FIRST_WITH_CALLS


@cache
def _machine(gcc: str) -> str:
    """The machine that a compiler compiles for, as arm-none-eabi. Compilers of one name have one
    version."""
    return _run([gcc, "-dumpmachine"]).strip()


def compiler_version() -> str:
    """The first line of the cross compiler's `--version`. Raises MissingToolError."""
    return _version(find_tool("gcc"))


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode:
        raise _explained(command, done.stderr)
    return done.stdout


class BankOverflowError(DoesNotFitError):
    """The linker found banks that are too small for their contents: `excess` bytes of each.

    `bank` and `excess_bytes` are those of the first.
    """

    def __init__(self, excess: Sequence[tuple[str, int]]) -> None:
        told = ", ".join(f"{size:,} bytes too many in {bank}" for bank, size in excess)
        super().__init__(f"the firmware does not fit: {told}")
        self.excess = tuple(excess)
        self.bank, self.excess_bytes = self.excess[0]


def _explained(command: Sequence[str], said: str) -> ThimbleError:
    full = _NO_ROOM.search(said)
    if full:
        return InputError(f"{Path(command[0]).name} cannot write what it makes: {full[0]}")
    overflows = {match["region"]: int(match["bytes"]) for match in _OVERFLOW.finditer(said)}
    if overflows:
        return BankOverflowError(tuple(overflows.items()))
    if "cannot find -lc" in said or "nosys.specs" in said:
        return BuildError(f"the C library for the board is missing; {_REMEDY}")
    lines = [line for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if re.search(r"error|undefined reference", line)] or lines
    shown = "\n".join(f"  {line}" for line in errors[:_ERROR_LINES])
    more = len(errors) - _ERROR_LINES
    tail = f"\n  ... and {more} more" if more > 0 else ""
    return BuildError(f"{Path(command[0]).name} failed:\n{shown}{tail}")


_INCLUDED = (".h", ".hpp", ".inc")
"""Suffixes of what sources include."""
_SEARCHED = ("CPATH", "C_INCLUDE_PATH", "GCC_EXEC_PREFIX", "COMPILER_PATH")
"""Variables of the environment by which gcc finds other headers, or other parts of itself."""


@cache
def headers_digest(folder: Path) -> str:
    """Digest of the names and contents of all headers in a folder.

    They are read once, and again after `headers_digest.cache_clear()`.
    """
    digest = hashlib.sha256()
    for header in sorted(path for path in folder.rglob("*") if path.suffix in _INCLUDED):
        digest.update(header.relative_to(folder).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(header.read_bytes()).digest())
    return digest.hexdigest()


def _key(gcc: str, unit: Unit, digests: Sequence[str]) -> str:
    """The key of an object in the cache: the compiler's version and machine, the variables that it
    reads, every flag in its order, the headers of each folder in the order of the search, and the
    source's bytes and name (`__FILE__`). A folder's own path does not count.
    """
    searched = [os.environ.get(name, "") for name in _SEARCHED]
    parts = [_version(gcc), _machine(gcc), *searched, str(len(unit.flags)), *unit.flags, *digests]
    parts += [str(len(unit.includes)), unit.suffix, unit.source.name, ""]
    digest = hashlib.sha256("\0".join(parts).encode())
    digest.update(unit.source.read_bytes())
    return digest.hexdigest()


def compile_unit(gcc: str, unit: Unit, target: Path) -> None:
    """One object, which is not cached. Raises BuildError with the compiler's message."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=_UNFINISHED)
    except OSError as error:
        raise InputError(
            f"cannot keep compiled files in {target.parent}: {error.strerror}; make room, or set "
            "XDG_CACHE_HOME to a folder that can be written"
        ) from error
    os.close(handle)
    temporary = Path(name)
    calls = temporary.with_suffix(CALLS_SUFFIX)
    try:
        includes = [word for folder in unit.includes for word in ("-I", str(folder))]
        for folder in unit.system_includes:
            includes += ["-isystem", str(folder)]
        rename = f"-ffile-prefix-map={unit.source.parent}=."
        command = [gcc, *unit.flags, rename, *includes, "-c", str(unit.source)]
        _run([*command, "-o", str(temporary)])
        if CALLS_FLAG in unit.flags:
            calls.replace(target.with_suffix(CALLS_SUFFIX))
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
        calls.unlink(missing_ok=True)


def compile_units(
    units: Iterable[Unit],
    report: Report = silent,
    gcc: str = "",
) -> tuple[Path, ...]:
    """The objects of `units`, in their order, compiled unless the cache has them.

    `report` gets the number that are compiled. `gcc` is the cross compiler unless another is named.
    Raises BuildError with the compiler's message.
    """
    gcc = gcc or find_tool("gcc")
    listed = tuple(units)
    if not _tells_calls(gcc):
        listed = tuple(
            replace(unit, flags=tuple(flag for flag in unit.flags if flag != CALLS_FLAG))
            for unit in listed
        )
    folder = cache_folder() / "objects"
    headers_digest.cache_clear()
    targets = []
    for unit in listed:
        folders = (unit.source.parent, *unit.includes, *unit.system_includes)
        digests = [headers_digest(include) for include in folders]
        targets.append(folder / f"{_key(gcc, unit, digests)}{unit.suffix}")
    missing = {t: u for t, u in zip(targets, listed, strict=True) if not t.exists()}
    report("compiling", len(listed) - len(missing), len(listed))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [pool.submit(compile_unit, gcc, unit, target) for target, unit in missing.items()]
        for count, job in enumerate(jobs, len(listed) - len(missing) + 1):
            job.result()
            report("compiling", count, len(listed))
    for target in targets:
        with contextlib.suppress(OSError):
            os.utime(target)
    if missing:
        _prune(folder)
    return tuple(targets)


def _prune(folder: Path) -> None:
    """Drop the longest unused objects beyond the limit, but none of the last hour.

    Drop also the unfinished files of killed compilers. At most once an hour: there may be many
    thousands.
    """
    stamp = folder / _PRUNED
    with contextlib.suppress(OSError):
        if stamp.exists() and stamp.stat().st_mtime > time.time() - _OLD_SECONDS:
            return
        stamp.touch()
    for path in folder.glob(f"*{_UNFINISHED}"):
        with contextlib.suppress(OSError):
            if path.stat().st_mtime < time.time() - _OLD_SECONDS:
                path.unlink()
    entries = []
    for path in folder.glob("*.o"):
        with contextlib.suppress(OSError):
            entries.append((path.stat().st_mtime, path.stat().st_size, path))
    excess = sum(size for _, size, _ in entries) - _CACHE_LIMIT_BYTES
    for modified, size, path in sorted(entries):
        if excess <= 0 or modified > time.time() - _OLD_SECONDS:
            return
        path.unlink(missing_ok=True)
        path.with_suffix(CALLS_SUFFIX).unlink(missing_ok=True)
        excess -= size


def find_host_compiler() -> str:
    """The path of the machine's own gcc. Raises MissingToolError saying how to install it."""
    program = shutil.which("gcc")
    if program is None:
        raise MissingToolError("gcc is not installed; run: apt-get install -y gcc libc6-dev")
    return program


def link_program(objects: Sequence[Path], flags: Sequence[str], program: Path) -> None:
    """Link a program for this machine, with gold if it is there: it takes a third of the time of
    the usual linker. Raises BuildError.
    """
    options = ["-fuse-ld=gold"] if shutil.which("ld.gold") else []
    files = (str(o) for o in objects)
    _run([find_host_compiler(), *options, *flags, *files, "-lm", "-o", str(program)])


def link(objects: Sequence[Path], flags: Sequence[str], script: Path, elf: Path) -> None:
    """Link to `elf` with a map beside it. Raises DoesNotFitError, or BuildError."""
    options = ["-nostartfiles", "--specs=nosys.specs", "-Wl,--gc-sections", "-T", str(script)]
    options += ["-Xlinker", f"-Map={elf.with_suffix('.map')}"]  # -Wl would part it at a comma
    _run([find_tool("gcc"), *flags, *options, *(str(o) for o in objects), "-o", str(elf)])


def link_functions(objects: Sequence[Path], flags: Sequence[str], elf: Path) -> None:
    """Link all functions of `objects`, and those of the C library that they call, to a program that
    does not run: what else they call is left open. Raises BuildError."""
    options = ["-nostartfiles", "--specs=nosys.specs", "-Wl,--unresolved-symbols=ignore-all"]
    options += ["-Wl,--no-warnings", "-Wl,-e,0"]
    _run([find_tool("gcc"), *flags, *options, *(str(o) for o in objects), "-o", str(elf)])


def disassembly(elf: Path) -> str:
    """The text that `objdump -d` prints of a program. Raises MissingToolError, BuildError."""
    return _run([find_tool("objdump"), "-d", str(elf)])


def convert(elf: Path, target_format: str, output: Path) -> None:
    """Run objcopy. `target_format` is 'binary' or 'ihex'."""
    _run([find_tool("objcopy"), "-O", target_format, str(elf), str(output)])

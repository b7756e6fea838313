"""QEMU's plugin that counts instructions: built by the machine's own compiler, kept in the cache.

Its source declares what it uses of QEMU's plugin API, so neither a header of QEMU nor its version
is needed to build it: it looks for the functions of the emulator that loads it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from toolchain.boards import Board
from toolchain.device import compiler
from toolchain.device.qemu import TraceRequest, find_qemu
from toolchain.errors import InputError, MissingToolError, ThimbleError
from toolchain.files import scratch_folder
from toolchain.kernels.cmsis_nn import cache_folder
from toolchain.packages import lazy
from toolchain.resources import RUNTIME_C

if TYPE_CHECKING:
    from elftools.elf import elffile, sections
else:
    elffile, sections = lazy("elftools.elf.elffile"), lazy("elftools.elf.sections")

SOURCE = RUNTIME_C / "qemu" / "instruction_counts.c"
_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC", "-fvisibility=hidden")
_PATIENCE_SECONDS = 300.0
_BEGIN, _END = "thimble_run_begins", "thimble_run_ends"
_OUTSIDE, _OPERATORS = "thimble_operator_mark", "thimble_operator_counts"
_MARKS = {_BEGIN, _END, _OUTSIDE, _OPERATORS}


def build() -> Path:
    """The plugin in the user's cache, compiled if it is not there yet.

    Raises MissingToolError where there is no gcc or the cache cannot be written, BuildError with
    what gcc says.
    """
    key = hashlib.sha256("\0".join((platform.machine(), *_FLAGS)).encode() + SOURCE.read_bytes())
    target = cache_folder() / "qemu" / f"instruction_counts-{key.hexdigest()[:16]}.so"
    if not target.is_file():
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with scratch_folder(target.parent) as folder:
                compiler.link_program([SOURCE], _FLAGS, folder / target.name)
                (folder / target.name).replace(target)
        except OSError as error:
            raise MissingToolError(
                f"cannot keep QEMU's plugin in {target.parent}: {error.strerror}; make room, or "
                "set XDG_CACHE_HOME to a folder that can be written"
            ) from error
    return target


@cache
def unavailable() -> str:
    """Why emulated firmware cannot be traced on this machine; '' if it can."""
    try:
        qemu, plugin = find_qemu(), build()
    except ThimbleError as error:
        return " ".join(str(error).split())
    request = TraceRequest(plugin, (), Path(os.devnull))
    command = [qemu, "-machine", "none", "-nodefaults", "-display", "none", "-monitor", "stdio"]
    try:
        done = subprocess.run(
            [*command, "-plugin", request.option],
            input="quit\n",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{qemu} does not start with a plugin: {error}"
    said = done.stderr.strip().splitlines() or ["no message"]
    return f"{qemu} takes no plugin: {said[0]}" if done.returncode else ""


def marks(board: Board, elf: Path) -> tuple[str, ...]:
    """The plugin's arguments that say which stores of a firmware begin and end runs and operators.

    Raises InputError if the firmware has no such marks: it was built by an older Thimble.
    """
    with elf.open("rb") as file:
        table = elffile.ELFFile(file).get_section_by_name(".symtab")
        symbols = table.iter_symbols() if isinstance(table, sections.SymbolTableSection) else ()
        places = {s.name: (s["st_value"], s["st_size"]) for s in symbols if s.name in _MARKS}
    if not {_BEGIN, _END} <= set(places):
        raise InputError(
            f"{elf} does not mark its runs, so they cannot be traced: compile it again"
        )
    arguments = [f"begin={places[_BEGIN][0]:x}", f"end={places[_END][0]:x}"]
    if {_OUTSIDE, _OPERATORS} <= set(places) and board.counter is not None:
        (first, size), bytes_each = places[_OPERATORS], board.counter.count_bytes
        arguments.append(f"outside={places[_OUTSIDE][0]:x}")
        arguments.append(f"operators={first:x}:{size // bytes_each}:{bytes_each}")
    return tuple(arguments)


def request(board: Board, elf: Path, memory: Sequence[str], file: Path) -> TraceRequest:
    """A trace of a firmware's runs. `memory`: the plugin's arguments about memories.

    Raises MissingToolError or InputError where it cannot be traced.
    """
    why = unavailable()
    if why:
        raise MissingToolError(why)
    return TraceRequest(build(), (*marks(board, elf), *memory), file)


if __name__ == "__main__":
    reason = unavailable()
    print(f"emulated boards will count no cycles: {reason}" if reason else build())

"""Bytes of code of C functions, measured in objects of each core: `sizes/` has a file for each.

`python -m benchmarks.code --write` measures those whose C has changed again. A row names the
function, a digest of its C, its bytes with what it alone refers to, and the functions that it
calls, those of the C library, too. A linker that drops unused sections keeps just what is reached,
each once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from toolchain.boards.core import Core
from toolchain.kernels.c_sources import defines, reached_text
from toolchain.kernels.cmsis_nn import is_named
from toolchain.kernels.runtime_c import tree

_FOLDER = Path(__file__).with_name("sizes")
_DIGITS = 8
PART = " part "
"""Behind the name of a function: a part that it shares with others of its file."""
_UNKNOWN_BYTES = 830
"""Bytes of a function that no file names: one of another CMSIS-NN, or of an operator's own C."""
_AROUND_BYTES = 3600
"""Bytes of the firmware around, until boards of a core are measured."""
_DSP, _ARMV6M = ("cortex-m33", "cortex-m7"), ("cortex-m0", "cortex-m0plus", "cortex-m1")
_OF_FIRMWARE = ("memcpy", "memset")
"""Functions that every firmware calls itself."""


@dataclass(frozen=True)
class Function:
    """A C function: its bytes of code and tables with what it alone refers to, what else it calls,
    and the digest of its C (`code_digest`)."""

    size_bytes: int
    calls: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class CodeSizes:
    """Sizes that were measured for a core. `firmware`: by board, bytes of code of its firmware
    without kernels and without the model's own functions."""

    functions: Mapping[str, Function]
    firmware: Mapping[str, int]

    def linked(self, called: Iterable[str]) -> dict[str, int]:
        """The bytes of all functions that are linked where these are called, the largest first."""
        found: dict[str, int] = {}
        waiting = [*called, *_OF_FIRMWARE]
        while waiting:
            name = waiting.pop()
            if name not in found:
                known = self.functions.get(name)
                found[name] = _UNKNOWN_BYTES if known is None else known.size_bytes
                waiting += () if known is None else known.calls
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))

    def is_of_kernels(self, function: str) -> bool:
        """Whether it is a kernel's own, and not of the C library."""
        known = self.functions.get(function)
        return known is None or bool(known.digest) or is_named(function)

    def around(self, board: str) -> int:
        """Bytes of code of the firmware of a board, kernels and the model's functions apart; of a
        board that was not measured, those of the one in the middle."""
        known = sorted(self.firmware.values()) or [_AROUND_BYTES]
        return self.firmware.get(board, known[len(known) // 2])

    @property
    def least_around(self) -> int:
        """No firmware of a board of this core has less code around kernels."""
        return min(self.firmware.values(), default=_AROUND_BYTES)


@cache
def code_sizes(name: str) -> CodeSizes:
    """The sizes of a core of that name; none where it was not measured."""
    file = _FOLDER / f"{name}.json"
    data = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    functions = {
        function: Function(size_bytes, tuple(calls), digest)
        for function, (digest, size_bytes, calls) in data.get("functions", {}).items()
    }
    return CodeSizes(MappingProxyType(functions), MappingProxyType(data.get("firmware", {})))


def sizes_of(core: Core) -> CodeSizes:
    """The sizes of a core, or of one that has its instructions."""
    return code_sizes(measured_core(core))


def measured_core(core: Core) -> str:
    """The core that was measured for this one, whose instructions it has."""
    if core.mve:
        return "cortex-m55"
    if core.dsp:
        return core.name if core.name in _DSP else "cortex-m4"
    return "cortex-m0plus" if core.name in _ARMV6M else "cortex-m3"


@cache
def code_bytes(core: Core, called: frozenset[str]) -> int:
    """Bytes of all functions that are linked where these are called, on a core."""
    return sum(sizes_of(core).linked(called).values())


def write_code_sizes(name: str, sizes: CodeSizes) -> None:
    """Keep what was measured for a core: a line for each function."""
    rows = [
        f"  {json.dumps(function)}: {json.dumps([row.digest, row.size_bytes, list(row.calls)])}"
        for function, row in sorted(sizes.functions.items())
    ]
    firmware = [f"  {json.dumps(b)}: {size}" for b, size in sorted(sizes.firmware.items())]
    text = ",\n".join(rows)
    around = ",\n".join(firmware)
    _FOLDER.mkdir(exist_ok=True)
    file = _FOLDER / f"{name}.json"
    file.write_text(
        f'{{\n "functions": {{\n{text}\n }},\n "firmware": {{\n{around}\n }}\n}}\n',
        encoding="utf-8",
    )
    code_sizes.cache_clear()


@cache
def code_digest(function: str) -> str:
    """A digest of the C of a function of Thimble's and of all that it refers to; '' of others."""
    kernels = tree()
    if not defines(kernels, function):
        return ""
    text = reached_text([function], kernels)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def stale_functions(sizes: CodeSizes) -> frozenset[str]:
    """The functions of Thimble's kernels that were not measured, or of other C."""
    current = (path.stem for path in tree().files())
    known = {name: row.digest for name, row in sizes.functions.items()}
    return frozenset(name for name in current if known.get(name, "-") != code_digest(name))


def standing(sizes: CodeSizes) -> Mapping[str, Function]:
    """The rows of C that stands: of Thimble's functions that did not change, with their parts, and
    of all others.
    """
    return {
        name: row
        for name, row in sizes.functions.items()
        if not row.digest or row.digest == code_digest(name.partition(PART)[0])
    }

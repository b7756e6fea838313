#!/usr/bin/env python3
"""Runs clang-tidy (with .clang-tidy) and gcc's -fanalyzer over generated C, kernels and firmware,
and lists what they say. Both are quiet: the exit code is 1 where one is not, or is missing.

    scripts/check_analysers.py

Needs clang-tidy, arm-none-eabi-gcc and gcc. Generated C is that of small models of every shape.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.c_samples import CORTEX_M4, write_samples  # noqa: E402
from toolchain.boards import HOST, Core, board  # noqa: E402
from toolchain.device.build import BuildOptions, firmware_defines  # noqa: E402
from toolchain.kernels import cmsis_nn, runtime_c  # noqa: E402
from toolchain.resources import RUNTIME_C  # noqa: E402

CROSS = "arm-none-eabi-gcc"
TOOLS = ("clang-tidy", CROSS, "gcc")
CPU = ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
_AT_ONCE = 12
_SAID = re.compile(r"^.*:\d+:\d+: (?:fatal )?(?:error|warning): .*$", re.M)


@dataclass(frozen=True)
class Sources:
    """C files of ours that are compiled alike."""

    files: tuple[Path, ...]
    include: tuple[Path, ...]
    core: Core
    flags: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        cpu = CPU if self.core == CORTEX_M4 else ()
        system = ("-isystem", str(cmsis_nn.find() / "Include"))
        return (
            "-std=gnu99",
            *cpu,
            *self.flags,
            *(f"-I{folder}" for folder in self.include),
            *system,
        )


def generated(folder: Path) -> Iterable[Sources]:
    """Generated C of every shape, written below `folder`."""
    for core in (CORTEX_M4, HOST):
        for library in write_samples(folder / core.name, core).values():
            files = tuple(sorted(library.glob("*.c")))
            yield Sources(files, (library, runtime_c.INCLUDE), core)


def kernels() -> Sources:
    return Sources(runtime_c.tree().files(), runtime_c.KERNEL_INCLUDES, CORTEX_M4)


def firmware() -> Sources:
    """That of a board with everything but the drivers of the other families."""
    target = board("nucleo-f446re")
    folder = RUNTIME_C / "firmware"
    ours = (*folder.glob("*.c"), *folder.glob("contact/*.c"))
    files = sorted([*ours, *(folder / name for name in target.firmware_sources)])
    defines = firmware_defines(target, BuildOptions())
    include = (folder / "include", runtime_c.INCLUDE)
    return Sources(tuple(files), include, CORTEX_M4, tuple(defines))


def tidy(sources: Sources) -> list[str]:
    """What clang-tidy says of the files."""
    target = ("--target=arm-none-eabi", *_headers()) if sources.core == CORTEX_M4 else ()
    command = ["clang-tidy", "--quiet", f"--config-file={ROOT / '.clang-tidy'}"]
    flags = ["--", *target, *sources.options, "-Wno-unknown-attributes"]
    starts = range(0, len(sources.files), _AT_ONCE)
    return _each([[*command, *sources.files[i : i + _AT_ONCE], *flags] for i in starts])


def analyse(sources: Sources) -> list[str]:
    """What gcc's analyser says of the files."""
    compiler = CROSS if sources.core == CORTEX_M4 else "gcc"
    flags = ["-O2", "-fanalyzer", "-Wall", "-Wextra", "-c", "-o", os.devnull]
    return _each([[compiler, *flags, *sources.options, file] for file in sources.files])


def _headers() -> tuple[str, ...]:
    """The folders of the cross compiler's C library, which clang does not know."""
    done = subprocess.run(
        [CROSS, *CPU, "-E", "-v", "-x", "c", os.devnull],
        capture_output=True,
        text=True,
        check=True,
    )
    listed = done.stderr.split("#include <...>")[-1].splitlines()[1:]
    folders = [os.path.realpath(line.strip()) for line in listed if line.startswith(" ")]
    own = [folder for folder in folders if "/lib/gcc/" not in folder]
    return tuple(part for folder in own for part in ("-isystem", folder))


def _each(commands: Sequence[Sequence[str | Path]]) -> list[str]:
    def said(command: Sequence[str | Path]) -> list[str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = _SAID.findall(done.stdout + done.stderr)
        if done.returncode and not found:
            raise RuntimeError(f"{command[0]} failed: {done.stdout}{done.stderr}")
        return found

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sorted({line for found in pool.map(said, commands) for line in found})


def main() -> int:
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"missing: {', '.join(missing)}")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        every = [*generated(Path(folder)), kernels(), firmware()]
        said = [line for sources in every for line in (*tidy(sources), *analyse(sources))]
    print("\n".join(said))
    print(f"{sum(len(sources.files) for sources in every)} files, {len(said)} remarks")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())

"""Programs of a model's library that read and write files: on the host, and in QEMU without our
firmware.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from toolchain.boards import Board
from toolchain.device.compiler import find_tool
from toolchain.device.host import OWN_WARNINGS
from toolchain.device.qemu import find_qemu
from toolchain.ir import Sources
from toolchain.kernels import cmsis_nn, runtime_c
from toolchain.resources import RUNTIME_C

FIRMWARE = Path(__file__).parent / "firmware"
_SANITIZERS = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_SCRIPT = """
SECTIONS {
  .text 0x0 : { KEEP(*(.vectors)) *(.text*) *(.rodata*) }
  . = 0x20000000;
  .data : { *(.data*) }
  .bss (NOLOAD) : { *(.bss*) *(COMMON) }
  stack_top = 0x20000000 + 0x1C000;
  ASSERT(. < stack_top - 0x1000, "no room for the stack")
}
ENTRY(begin)
"""
_LIMIT_SECONDS = 600


def run_with_files(
    board: Board, sources: Sources, program: str, folder: Path, flags: Sequence[str] = ()
) -> None:
    """Build `firmware/<program>` with the model's files and run it in `folder`. Fails if it exits
    with another code than 0.
    """
    for name, text in sources.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    kernels = cmsis_nn.find()
    own = [FIRMWARE / program, *(folder / n for n in sources.files if n.endswith(".c"))]
    own += [RUNTIME_C / path for path in sources.runtime]
    theirs = [kernels / path for path in sources.cmsis_nn]
    include = [f"-I{path}" for path in (folder, FIRMWARE, *runtime_c.KERNEL_INCLUDES)]
    include += ["-isystem", str(kernels / "Include")]
    elf = folder / "program"
    if board.is_host:
        files = FIRMWARE / "files_host.c"
        command = ["gcc", "-std=gnu99", "-O1", *_SANITIZERS, "-Werror", *OWN_WARNINGS]
        running = [str(elf)]
    else:
        assert board.emulator is not None
        (folder / "program.ld").write_text(_SCRIPT, encoding="utf-8")
        files = FIRMWARE / "files_semihosted.c"
        command = [find_tool("gcc"), "-std=gnu99", "-O2", *board.compiler_flags, "-nostartfiles"]
        command += ["-ffunction-sections", "-Wl,--gc-sections", "-T", str(folder / "program.ld")]
        command += ["--specs=nosys.specs"]
        running = [find_qemu(), "-machine", board.emulator.machine, "-nographic", "-monitor"]
        running += ["none", "-serial", "none", "-semihosting-config", "enable=on,target=native"]
        running += ["-kernel", str(elf)]
    made = [*command, *flags, *include, *map(str, [*own, files, *theirs]), "-o", str(elf), "-lm"]
    built = subprocess.run(made, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    done = subprocess.run(
        running, cwd=folder, capture_output=True, text=True, check=False, timeout=_LIMIT_SECONDS
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr}"

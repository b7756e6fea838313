"""Programs in assembly, without firmware, traced in QEMU: they mark their own runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import run

from elftools.elf.elffile import ELFFile

from toolchain.boards import Board
from toolchain.cycles.memory_system import MemorySystem
from toolchain.cycles.trace import Trace, read_trace
from toolchain.device import trace_plugin
from toolchain.device.compiler import find_tool
from toolchain.device.qemu import Machine

_SCRIPT = """
SECTIONS {
  .text 0x0 : { *(.text) }
  .bss 0x20000000 (NOLOAD) : { *(.bss) }
}
"""
_BEFORE = """
  .syntax unified
  .thumb
  .text
  .word 0x20020000, start + 1
  .thumb_func
start:
  ldr r0, =0xE000ED88     // CPACR: the coprocessors
  ldr r1, =0x00F0000F
  str r1, [r0]
  dsb
  isb
  ldr r7, =thimble_run_begins
  ldr r6, =thimble_run_ends
  ldr r5, =thimble_operator_counts
  ldr r4, =thimble_operator_mark
"""
_AFTER = """
  ldr r0, =0x18           // SYS_EXIT
  ldr r1, =0x20026        // ADP_Stopped_ApplicationExit
  bkpt 0xAB
  .ltorg
  .bss
  .macro word name, bytes
  .global \\name
  .type \\name, %object
  .size \\name, \\bytes
\\name: .skip \\bytes
  .endm
  .balign 8
  word thimble_operator_counts, @BYTES@
  word thimble_operator_mark, 8
  word thimble_run_begins, 4
  word thimble_run_ends, 4
"""
BEGIN, END = "  strb r0, [r7]\n", "  strb r0, [r6]\n"
OUTSIDE = "  str r0, [r4]\n"


def end_of_operator(board: Board, index: int) -> str:
    assert board.counter is not None
    return f"  str r0, [r5, #{index * board.counter.count_bytes}]\n"


@dataclass(frozen=True)
class Traced:
    trace: Trace
    labels: Mapping[str, int]


def traced(
    board: Board, body: str, folder: Path, memory: MemorySystem | None = None, after: str = ""
) -> Traced:
    """Run `body` (which contains `BEGIN` and `END`; `after` follows the exit) and read its trace.

    Registers r4 to r7 hold the marks' addresses. Labels are those of all symbols.
    """
    assert board.counter is not None
    source, script, elf = folder / "bare.s", folder / "bare.ld", folder / "bare.elf"
    ending = _AFTER.replace("@BYTES@", str(8 * board.counter.count_bytes))
    source.write_text(_BEFORE + body + ending.replace("  .ltorg\n", f"  .ltorg\n{after}\n", 1))
    script.write_text(_SCRIPT)
    command = [find_tool("gcc"), *board.compiler_flags, "-nostdlib", "-T", str(script)]
    run([*command, "-o", str(elf), str(source)], check=True)
    memory = memory or MemorySystem()
    file = folder / "counts.txt"
    request = trace_plugin.request(board, elf, memory.plugin_arguments(), file)
    with Machine(board, elf, request) as machine:
        assert machine.exit_code(300) == 0
    with elf.open("rb") as opened:
        table = ELFFile(opened).get_section_by_name(".symtab")
        labels = {s.name: s["st_value"] & ~1 for s in table.iter_symbols() if s.name}
    return Traced(read_trace(file, memory.region_names), labels)

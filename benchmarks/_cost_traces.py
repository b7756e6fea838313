"""What kernels of the grid execute: each traced in QEMU, kept in a folder by board and firmware.

A folder has the firmware of a batch of kernels and, for each system of memories, the counts of the
second of two rounds through all of them: constants then come from memory, as in an inference of a
network, and code that fits a cache is in it.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Board
from toolchain.cycles.core_timing import CoreTiming
from toolchain.cycles.instruction import Instruction
from toolchain.cycles.memory_system import MemorySystem, Region
from toolchain.cycles.program import Program, read_program
from toolchain.cycles.reading import read
from toolchain.cycles.trace import Counts, Section, Trace, Traffic
from toolchain.device import trace_plugin
from toolchain.device.compiler import find_tool
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.device.session import open_board
from toolchain.errors import LinkError
from toolchain.memory.plan import Plan
from toolchain.timing.kernel_firmware import Kernel, batches_of, firmware_of, planned_kernels

Numbers = NDArray[np.int64]
_WIDTH = 7
"""Columns before those of the regions: kernel, address, size, executions, taken, and misses."""
_OF_REGION = 5
_KEYS = "kernels.json"


@dataclass(frozen=True)
class Traced:
    """A kernel that ran: its plan, and what each of its instructions did in each system."""

    kernel: Kernel
    plan: Plan
    program: Program
    known: dict[object, object]
    sections: Mapping[str, Section]

    def core_cycles(self, timing: CoreTiming, board: Board) -> tuple[Mapping[int, float], float]:
        """By address, of all executions together, without stalls; and what loads take that do not
        overlap because they are of different memories.
        """
        section = next(iter(self.sections.values()))
        none = {"jump_misses": 0, "sequential_misses": 0}
        section = replace(
            section, counts={at: replace(of, **none) for at, of in section.counts.items()}
        )
        never = MemorySystem(
            tuple(Region(bank.name, bank.origin, bank.size_bytes) for bank in board.memories)
        )
        once = _OnceEach(timing, self.known)
        (reading,) = read(Trace((section,)), self.program, once, never).sections
        return {at: line.cycles.core for at, line in reading.lines.items()}, reading.cycles.data


@dataclass(frozen=True)
class _OnceEach:
    """A timing model that is asked once for each run of instructions of one program."""

    timing: CoreTiming
    known: dict[object, object]

    @property
    def name(self) -> str:
        return self.timing.name

    @property
    def source(self) -> str:
        return self.timing.source

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        key = (self.name, block[0].address, len(block), repeats)
        if key not in self.known:
            self.known[key] = self.timing.block_cycles(block, repeats)
        return self.known[key]

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        return self.timing.taken_cycles(branch, previous, target)

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        return self.timing.overlapped_cycles(previous, instruction)


def traced(
    kernels: Sequence[Kernel],
    board: Board,
    root: Path,
    systems: Mapping[str, MemorySystem],
    store: Path,
) -> Iterator[list[Traced]]:
    """Those of each firmware. Traces what the folder `store` lacks. `root`: CMSIS-NN."""
    for batch in batches_of(planned_kernels(kernels, board, []), board):
        keys = json.dumps([[one.key.kernel, one.key.shape] for one, _ in batch], indent=1)
        folder = store / board.name / hashlib.sha256(keys.encode()).hexdigest()[:16]
        if not (folder / _KEYS).is_file():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            firmware_of(batch, board, root, folder)
            (folder / _KEYS).write_text(keys, encoding="utf-8")
        firmware = load_firmware(folder)
        found = {
            name: _sections(firmware, len(batch), system, folder / _file(system))
            for name, system in systems.items()
        }
        program, known = read_program(firmware.elf, find_tool("objdump")), {}
        yield [
            Traced(kernel, plan, program, known, {name: each[i] for name, each in found.items()})
            for i, (kernel, plan) in enumerate(batch)
            if all(i in each for each in found.values())
        ]


def _file(system: MemorySystem) -> str:
    """By what is simulated, and what simulates it."""
    what = "\0".join(system.plugin_arguments()).encode() + trace_plugin.SOURCE.read_bytes()
    return f"{hashlib.sha256(what).hexdigest()[:16]}.npz"


def _sections(
    firmware: Firmware, count: int, system: MemorySystem, file: Path
) -> Mapping[int, Section]:
    """Of each kernel that runs to its end."""
    if not file.is_file():
        np.savez_compressed(file, counts=_run(firmware, count, system))
    with np.load(file) as stored:
        counts: Numbers = stored["counts"]
    ends = np.flatnonzero(np.diff(counts[:, 0])) + 1
    parts = np.split(counts, ends) if len(counts) else []
    return {int(part[0, 0]): _section(part, system.region_names) for part in parts}


def _run(firmware: Firmware, count: int, system: MemorySystem) -> Numbers:
    """Two rounds through all kernels, of which the second counts."""
    failed: set[int] = set()
    while True:
        order = [index for index in range(count) if index not in failed]
        with open_board(firmware, trace=system) as session:
            try:
                for index in (*order, *order):
                    failing = index
                    session.time_kernel(index)
            except LinkError:
                failed.add(failing)
                continue
            sections = session.trace().sections
        rows = [
            row
            for section in sections
            if section.operator == 0 and section.run >= len(order)
            for row in _rows(section, order[section.run - len(order)], system.region_names)
        ]
        return np.array(rows, np.int64).reshape(-1, _WIDTH + _OF_REGION * len(system.regions))


def _rows(section: Section, index: int, regions: Iterable[str]) -> Iterator[list[int]]:
    none = Traffic()
    for address, counts in section.counts.items():
        row = [index, address, counts.size_bytes, counts.executions, counts.taken]
        row += [counts.sequential_misses, counts.jump_misses]
        for name in regions:
            of = counts.traffic.get(name, none)
            row += [of.loads, of.stores, of.load_misses, of.store_misses, of.write_backs]
        yield row


def _section(rows: Numbers, regions: Sequence[str]) -> Section:
    counts = {}
    for _, address, *numbers in rows.tolist():
        own, rest = numbers[: _WIDTH - 2], numbers[_WIDTH - 2 :]
        parts = [rest[i : i + _OF_REGION] for i in range(0, len(rest), _OF_REGION)]
        traffic = {
            name: Traffic(*part) for name, part in zip(regions, parts, strict=True) if any(part)
        }
        counts[address] = Counts(*own, traffic)
    return Section(0, 0, counts)

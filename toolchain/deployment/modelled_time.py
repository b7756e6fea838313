"""From the trace of an emulated firmware to the time that it would take on a chip."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from toolchain.boards import Board, Core, Target, as_target, boards
from toolchain.cycles.core_timing import CoreTiming, timing_of
from toolchain.cycles.memory_system import MemorySystem, bytes_used, memory_system
from toolchain.cycles.program import Program, read_program
from toolchain.cycles.reading import Reading, read
from toolchain.cycles.remembered import Remembered
from toolchain.cycles.trace import Section, Trace
from toolchain.deployment.profile import Function
from toolchain.device import trace_plugin
from toolchain.device.compiler import find_tool
from toolchain.device.firmware import Firmware
from toolchain.errors import InputError, MissingToolError, ThimbleError

_ALSO_READ_AS = {"cortex-m4": ("cortex-m33",), "cortex-m55": ("cortex-m85",)}
"""Cores that run the code of another, with the same extensions, so that it is the code that they
would be given but for the order of instructions."""
_OBJDUMP = "objdump"


@dataclass(frozen=True)
class ModelledRun:
    """Cycles of one inference, and of each operator in it."""

    total: int
    operators: tuple[int, ...]


@dataclass(frozen=True)
class ModelledTime:
    """Inferences as the board or chip `target` would run them at `clock_hz`.

    `reading`: of the last one, by operator, function and instruction.
    """

    target: str
    clock_hz: int
    runs: tuple[ModelledRun, ...]
    reading: Reading

    @property
    def functions(self) -> tuple[Function, ...]:
        """Functions of the last inference, most expensive first."""
        return tuple(
            Function(name, round(total.cycles.total), total.instructions)
            for name, total in self.reading.functions.items()
        )


@dataclass(frozen=True)
class Reader:
    """Reads traces of one firmware as the time of a target. `memory`: what is to be traced."""

    target: Target
    timing: CoreTiming
    memory: MemorySystem
    program: Program
    operators: int

    def read(self, trace: Trace) -> ModelledTime:
        """The runs of a trace, of which there must be one.

        Raises ResultError where it is of another firmware.
        """
        runs: list[ModelledRun] = []
        before: tuple[Section, ...] = ()
        for index in sorted({section.run for section in trace.sections}):
            run = trace.run(index)
            sections = tuple(replace(section, run=0) for section in run.sections)
            if sections != before:
                reading = read(run, self.program, self.timing, self.memory)
                runs.append(self._run(reading))
            else:
                runs.append(runs[-1])
            before = sections
        return ModelledTime(self.target.name, self.target.clock_hz, tuple(runs), reading)

    def read_longest(self, trace: Trace) -> ModelledTime:
        """As `read`, of the run that executed most instructions alone."""
        executed = [0] * trace.runs
        for section in trace.sections:
            executed[section.run] += section.instructions
        return self.read(trace.run(executed.index(max(executed))))

    def _run(self, reading: Reading) -> ModelledRun:
        cycles = {section.operator: section.cycles.total for section in reading.sections}
        operators = tuple(round(cycles.get(i, 0.0)) for i in range(self.operators))
        return ModelledRun(round(reading.cycles.total), operators)


@dataclass(frozen=True)
class NoReader:
    """Why what a firmware executes cannot be read as cycles; '' for silicon, which counts them."""

    reason: str = ""


def find_reader(
    firmware: Firmware, port: str | None = None, read_as: str = ""
) -> Reader | NoReader:
    """How to read a firmware's traces as the time of its board, or of the one named `read_as`.

    Raises InputError if that is no board or chip, or cannot run the firmware's code, and
    MissingToolError where it was asked for and nothing can be traced here.
    """
    board = firmware.board
    if board.emulator is None:
        if read_as:
            raise InputError(
                f"--as {read_as}: what ran in QEMU can be read as another chip; {board.name} is "
                f"no emulated board: {_remedy(as_target(read_as))}"
            )
        return NoReader()
    target = as_target(read_as or board.emulator.stands_for or board.name)
    if read_as:
        check_runs(board, target)
    why = no_cycles(board, port) or _unmarked(firmware)
    if why and read_as:
        raise MissingToolError(f"--as {read_as}: {why}")
    if why:
        return NoReader(why)
    timing = Remembered(_timing(target.core))
    used_bytes = bytes_used(firmware.elf, board.memories)
    memory = memory_system(board.memories, target.memories, target.caches, used_bytes)
    program = _program(firmware.elf, firmware.build_id)
    return Reader(target, timing, memory, program, len(firmware.model.operators))


@lru_cache(maxsize=1)
def _program(elf: Path, build_id: str) -> Program:
    """Read a program once, as one firmware is read as several chips; `build_id` tells it from
    others of its name."""
    return read_program(elf, find_tool(_OBJDUMP))


def no_cycles(board: Board, port: str | None = None) -> str:
    """Why what an emulated board executes cannot be read as cycles on this machine; '' if it can,
    and for silicon, which counts them itself.
    """
    if board.emulator is None:
        return ""
    if port is not None:
        return f"what is at {port} was not started here, so it cannot be traced"
    try:
        _timing(board.core)
        find_tool(_OBJDUMP)
    except ThimbleError as error:
        return str(error)
    return trace_plugin.unavailable()


def _timing(core: Core) -> CoreTiming:
    timing = timing_of(core.name)
    if timing is None:
        raise InputError(f"there is no timing model of the {core.name}")
    return timing


def _unmarked(firmware: Firmware) -> str:
    try:
        trace_plugin.marks(firmware.board, firmware.elf)
    except InputError as error:
        return str(error)
    return ""


def _runs(code: Core, on: Core) -> bool:
    return on.name == code.name or on.name in _ALSO_READ_AS.get(code.name, ())


def check_runs(board: Board, target: Target) -> None:
    """Check a target. Raises InputError where its core would be given other code than the
    board's."""
    if _runs(board.core, target.core):
        return
    raise InputError(
        f"--as {target.name}: {board.name} runs code for a {board.core.name}, a "
        f"{target.core.name} is given other instructions; {_remedy(target)}"
    )


def _remedy(target: Target) -> str:
    """The emulated boards whose code the target can be given."""
    emulated = (b for b in boards().values() if b.emulator is not None)
    names = [b.name for b in emulated if _runs(b.core, target.core)]
    return f"compile for {' or '.join(names)}" if names else "no emulated board has such a core"

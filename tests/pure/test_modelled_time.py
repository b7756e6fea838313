"""Traces as the time of a chip: runs and operators, and which chips run a board's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import pytest

from toolchain.boards import as_target, board
from toolchain.cycles.instruction import Instruction, parse_instruction
from toolchain.cycles.memory_system import MemorySystem
from toolchain.cycles.program import Function, Program
from toolchain.cycles.remembered import Remembered
from toolchain.cycles.trace import Counts, Section, Trace
from toolchain.deployment.modelled_time import Reader, check_runs, no_cycles
from toolchain.errors import InputError

TEXTS = ("ldr\tr0, [r1]", "adds\tr0, #1", "bx\tlr")
PROGRAM = Program(
    MappingProxyType({2 * i: parse_instruction(2 * i, 2, text) for i, text in enumerate(TEXTS)}),
    (Function("work", 0, 4), Function("leave", 4, 6)),
)


@dataclass(frozen=True)
class TwoEach:
    """Two cycles an instruction, five more for a branch that is taken."""

    name: str = "cortex-m4"
    source: str = "none"
    asked: list[int] = field(default_factory=list)

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        self.asked.append(block[0].address)
        return (2.0,) * len(block)

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        return 5.0

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        return 0.0


def section(run: int, operator: int | None, times: int) -> Section:
    counts = {0: Counts(2, times), 2: Counts(2, times), 4: Counts(2, times, times)}
    return Section(run, operator, counts)


def reader(timing: TwoEach) -> Reader:
    target = as_target("nucleo-f446re")
    return Reader(target, Remembered(timing), MemorySystem(), PROGRAM, operators=3)


def test_runs_operators_and_functions_have_their_cycles() -> None:
    runs = [(section(r, None, 1), section(r, 0, 10), section(r, 2, 10 + (r == 1))) for r in (0, 1)]
    trace = Trace(tuple(s for run in runs for s in run))
    timing = TwoEach()
    found = reader(timing).read(trace)
    assert (found.target, found.clock_hz) == ("nucleo-f446re", 180_000_000)
    assert [run.operators for run in found.runs] == [(110, 0, 110), (110, 0, 121)]
    assert [run.total for run in found.runs] == [231, 242]
    assert [(f.name, f.count, f.instructions) for f in found.functions] == [
        ("leave", 7 * 22, 22),
        ("work", 4 * 22, 44),
    ]
    assert timing.asked == [0], "a run of instructions of a program is timed once"
    longest = reader(timing).read_longest(trace)
    assert [run.total for run in longest.runs] == [242]


@pytest.mark.parametrize(
    ("ran_on", "target", "remedy"),
    [
        ("mps2-an386", "nucleo-l4r5zi", None),
        ("netduinoplus2", "stm32u575", None),
        ("mps2-an500", "nucleo-h7a3zi-q", None),
        ("mps3-an547", "mps3-an547", None),
        ("mps2-an385-v6m", "stm32g0b1", None),
        ("mps2-an385", "stm32g0b1", "compile for mps2-an385-v6m"),
        ("mps2-an500", "nucleo-f446re", "compile for mps2-an386 or netduinoplus2"),
        ("mps3-an547", "nucleo-h743zi", "compile for mps2-an500"),
    ],
)
def test_a_chip_is_read_from_code_that_it_would_be_given(
    ran_on: str, target: str, remedy: str | None
) -> None:
    if remedy is None:
        check_runs(board(ran_on), as_target(target))
        return
    with pytest.raises(InputError, match=f"{ran_on} runs code for a cortex-.*{remedy}"):
        check_runs(board(ran_on), as_target(target))


def test_what_was_not_started_here_is_not_traced() -> None:
    assert "socket://lab:5000" in no_cycles(board("mps2-an386"), "socket://lab:5000")
    assert no_cycles(board("nucleo-f446re"), "/dev/ttyACM0") == "", "silicon counts its own cycles"

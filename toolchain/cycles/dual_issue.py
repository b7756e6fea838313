"""A scoreboard for cores that issue up to two instructions a cycle, in order.

A core's table (`cores/*.json`, renewed by scripts/renew_core_tables.py) has the timing of each
*form* of an instruction (its mnemonic, width and kinds of operands: `form_of`) from LLVM's
scheduling model: units and for how many cycles, latency of each result, how much later than its
issue each operand is read (advance), and whether it starts or ends a group of instructions issued
together. The scoreboard places the instructions of a block by it, one after the other, each in the
first cycle in which a slot and its units are free and its operands come in time. The module of each
core has `Rules` where silicon or Arm's documents differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType

from toolchain.cycles.instruction import Instruction

WIDTH = 2
"""Instructions that are issued in a cycle, at most."""

_REGISTER = re.compile(r"\b(r\d+|sp|lr|pc|ip|fp|sl|sb|s\d+|d\d+|q\d+)\b")
_ALIASES = {"sl": "r10", "fp": "r11", "ip": "r12", "sb": "r9"}
_NUMBER = re.compile(r"#-?[\w.+-]+")
_LANE = re.compile(r"\[\d\]")
_WORD_LOADS = frozenset({"ldr", "ldrd", "ldm", "ldmia", "ldmdb", "pop"})


def register_tokens(instruction: Instruction) -> tuple[str, ...]:
    """Names of registers in the operands, in the order in which they are written."""
    names: list[str] = []
    for operand in instruction.operands:
        names.extend(_REGISTER.findall(_NUMBER.sub("#", operand)))
    return tuple(_ALIASES.get(name, name) for name in names)


@cache
def parts(register: str) -> tuple[str, ...]:
    """A register as the registers of 32 bits that it consists of."""
    width = {"d": 2, "q": 4}.get(register[0], 1)
    if width == 1 or not register[1:].isdigit():
        return (register,)
    return tuple(f"s{int(register[1:]) * width + part}" for part in range(width))


def _shape(operand: str) -> str:
    if operand.startswith("{"):
        return "{" + operand[1] + "}"
    text = _NUMBER.sub("#", operand.lower())
    text = _LANE.sub("[]", text)
    text = _REGISTER.sub(lambda match: _kind(match.group(1)), text)
    return text.replace(", ", ":")


def _kind(register: str) -> str:
    return register if register == "pc" else ("r" if register in _CORE else register[0])


_CORE = frozenset({"sp", "lr", "ip", "fp", "sl", "sb"})


def form_of(instruction: Instruction) -> str:
    """The form of an instruction, the key of a table: `adds.n r,r,#`, `ldr.w r,[r],#`, `vmla.s8
    q,q,r`."""
    name = instruction.mnemonic
    if "flags" in instruction.writes and instruction.operands and name not in _COMPARES:
        name += "s"
    if instruction.data_type:
        name += f".{instruction.data_type}"
    width = "n" if instruction.size_bytes == 2 else "w"
    operands = instruction.operands
    if instruction.target is not None:
        operands = (*operands[:-1], "@")
    return f"{name}.{width} {','.join(map(_shape, operands))}".strip()


_COMPARES = frozenset({"cmp", "cmn", "tst", "teq", "msr", "vmrs"})


@dataclass(frozen=True)
class Form:
    """Timing of a form. Cycles throughout.

    `units`: how long each unit is taken; a name with `|` is any one of several. `slots`: of the
    `WIDTH` of a cycle. `writes`: latency of the result in a register, by its place among the
    operands' registers (`flags`, `p0` by name). `reads`: by place, how much later than its issue
    the operand is read, by kind of producer (`*`: any other; `load`: a load of words; a number:
    one of that latency). `latency` is that of results which have none of their own.
    """

    units: Mapping[str, int]
    slots: int
    begins_group: bool
    ends_group: bool
    latency: int
    writes: Mapping[str, int]
    reads: Mapping[str, Mapping[str, int]]
    issue_cycles: int = 1


@dataclass(frozen=True)
class Table:
    """Forms of a core and the names of its units. `kin`: forms of each mnemonic, with and without
    its data type."""

    core: str
    units: tuple[str, ...]
    forms: Mapping[str, Form]
    kin: Mapping[str, tuple[str, ...]]

    def form(self, instruction: Instruction) -> Form:
        """The timing of an instruction's form, or of the nearest form in the table: with the other
        width, other operands, another data type, or of its kind."""
        name = form_of(instruction)
        exact = self.forms.get(name)
        if exact is not None:
            return exact
        head, _, shape = name.partition(" ")
        other = head[:-1] + ("n" if head.endswith("w") else "w")
        base = head.rpartition(".")[0]
        near = (
            f"{other} {shape}".strip(),
            *self.kin.get(base, ()),
            *self.kin.get(base.partition(".")[0], ()),
            _kin(instruction),
        )
        return next(self.forms[each] for each in near if each in self.forms)


def _kin(instruction: Instruction) -> str:
    letters = {token[0] for token in register_tokens(instruction)} & {"s", "d", "q"}
    if instruction.mnemonic.startswith("v") and letters:
        if "q" in letters:
            return "vadd.i32.w q,q,q"
        return "vadd.f64.w d,d,d" if letters == {"d"} else "vadd.f32.w s,s,s"
    if instruction.is_load:
        return "ldr.w r,[r:#]"
    if instruction.is_store:
        return "str.w r,[r:#]"
    return "b.n @" if instruction.is_branch else "add.w r,r,r"


def read_table(path: Path) -> Table:
    """A table as scripts/renew_core_tables.py writes it."""
    data = json.loads(path.read_text(encoding="utf-8"))
    forms = {}
    classes = [_form(each) for each in data["classes"]]
    for name, (number, _) in data["forms"].items():
        forms[name] = classes[number]
    kin: dict[str, list[str]] = {}
    for name in forms:
        base = name.partition(" ")[0].rpartition(".")[0]
        for each in {base, base.partition(".")[0]}:
            kin.setdefault(each, []).append(name)
    return Table(
        data["core"],
        tuple(data["units"]),
        MappingProxyType(forms),
        MappingProxyType({name: tuple(each) for name, each in kin.items()}),
    )


def _form(data: Mapping[str, object]) -> Form:
    values = dict(data)
    units, writes, reads = values.pop("units"), values.pop("writes"), values.pop("reads")
    assert isinstance(units, dict) and isinstance(writes, dict) and isinstance(reads, dict)
    return Form(units=units, writes=writes, reads=reads, **values)  # type: ignore[arg-type]


# --- Scoreboard -----------------------------------------------------------------------------------


def _same(instruction: Instruction, form: Form) -> Form:
    return form


def _nothing(producer: Instruction, consumer: Instruction, register: str) -> int:
    return 0


def _apart(older: Instruction, younger: Instruction) -> bool:
    return False


@dataclass(frozen=True)
class Rules:
    """Rules of a core beyond LLVM's model, from its documents or from measurements on silicon.

    `form`: the timing of an instruction, given that of the table. `bypass`: cycles added to the
    latency of a result from one instruction to another. `apart`: whether two instructions that
    could be issued together are not. `early`: whether an instruction that is the first of its
    cycle, and whose operands were there a cycle before, gives its result to the second of its cycle
    (an ALU in an earlier stage of the pipeline). `open_slot`: cycles that the last instruction of a
    block takes when another could have been issued with it.
    """

    form: Callable[[Instruction, Form], Form] = _same
    bypass: Callable[[Instruction, Instruction, str], int] = _nothing
    apart: Callable[[Instruction, Instruction], bool] = _apart
    early: Callable[[Instruction], bool] = lambda instruction: False
    open_slot: float = 0.5


@dataclass(frozen=True)
class Result:
    """A register's last writer: when it was issued, after how many cycles its result is there."""

    producer: Instruction
    issued: int
    latency: int

    @property
    def kind(self) -> str:
        """The kind of producer, as `Form.reads` names it."""
        return "load" if self.producer.mnemonic in _WORD_LOADS else str(self.latency)


@dataclass(frozen=True)
class Timing:
    """An instruction with its form and its operands' registers, ready to be placed."""

    instruction: Instruction
    form: Form
    reads: tuple[tuple[str, Mapping[str, int]], ...]
    writes: tuple[tuple[str, int], ...]
    units: tuple[tuple[tuple[str, ...], int], ...]
    early: bool


_AT_ISSUE: Mapping[str, int] = MappingProxyType({"*": 0})


def timing_of_instruction(instruction: Instruction, table: Table, rules: Rules) -> Timing:
    """Operands and results of an instruction, each with its advance or its latency."""
    form = rules.form(instruction, table.form(instruction))
    places: dict[str, list[str]] = {}
    for place, token in enumerate(register_tokens(instruction)):
        for part in parts(token):
            places.setdefault(part, []).append(str(place))
    reads = []
    for register in sorted(instruction.reads):
        known = [form.reads[place] for place in places.get(register, ()) if place in form.reads]
        reads.append((register, known[0] if known else _AT_ISSUE))
    writes = []
    for register in sorted(instruction.writes - {"pc"}):
        keys = [register, *places.get(register, ())]
        known_latency = [form.writes[key] for key in keys if key in form.writes]
        writes.append((register, known_latency[0] if known_latency else form.latency))
    units = tuple((tuple(key.split("|")), cycles) for key, cycles in form.units.items())
    early = rules.early(instruction)
    return Timing(instruction, form, tuple(reads), tuple(writes), units, early)


@dataclass
class Scoreboard:
    """Instructions in flight. `place` issues the next one and gives its cycle."""

    rules: Rules
    cycle: int = 0
    used: int = 0
    group: list[Instruction] = field(default_factory=list)
    free: dict[str, int] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)

    def place(self, timing: Timing) -> int:
        """Issue an instruction: the first cycle, not before that of the one before it, in which its
        operands are there, its units free and a slot left."""
        form = timing.form
        at = max(self.cycle, self.ready(timing))
        while not self._fits(timing, at):
            at += 1
        if at > self.cycle:
            self.cycle, self.used, self.group = at, 0, []
        early = timing.early and not self.group and self.ready(timing) < at
        for names, cycles in timing.units:
            self.free[min(names, key=lambda name: self.free.get(name, 0))] = at + cycles
        for register, latency in timing.writes:
            soon = latency - 1 if early and latency == 1 else latency
            self.results[register] = Result(timing.instruction, at, soon)
        self.used += form.slots
        self.group.append(timing.instruction)
        if form.ends_group:
            self.used = max(self.used, WIDTH)
        if form.issue_cycles > 1:
            self.cycle, self.used = at + form.issue_cycles - 1, WIDTH
        return at

    def ready(self, timing: Timing) -> int:
        """The first cycle in which all operands come in time."""
        at = 0
        for register, advances in timing.reads:
            result = self.results.get(register)
            if result is None:
                continue
            advance = advances.get(result.kind, advances["*"])
            latency = result.latency + self.rules.bypass(
                result.producer, timing.instruction, register
            )
            at = max(at, result.issued + max(latency - advance, 0))
        return at

    def _fits(self, timing: Timing, at: int) -> bool:
        form = timing.form
        if at == self.cycle and self.used:
            if form.begins_group or (form.slots and self.used + form.slots > WIDTH):
                return False
            if any(self.rules.apart(older, timing.instruction) for older in self.group):
                return False
        free = self.free
        return all(any(free.get(name, 0) <= at for name in names) for names, _ in timing.units)

    @property
    def end(self) -> float:
        """Cycles from the start until another block can begin."""
        taken = 1.0 if self.used >= WIDTH else self.rules.open_slot if self.used else 0.0
        return self.cycle + taken


def block_cycles(timings: Sequence[Timing], rules: Rules, repeats: bool) -> tuple[float, ...]:
    """Cycles that each instruction of a block adds. A wait is counted where it is waited.

    With `repeats`: of a turn like the one before it, or the mean of several where turns differ.
    """
    if not timings:
        return ()
    board = Scoreboard(rules)
    if not repeats:
        first = _turn(board, timings)
        first[-1] += board.end - board.cycle
        return tuple(first)
    turns: list[list[float]] = []
    ends: list[int] = []
    for _ in range(_WARM + _COUNTED):
        turns.append(_turn(board, timings))
        ends.append(board.used)
        if len(turns) > _WARM and turns[-1] == turns[-2] and ends[-1] == ends[-2]:
            return tuple(turns[-1])
    counted = turns[-_COUNTED:]
    return tuple(sum(each) / _COUNTED for each in zip(*counted, strict=True))


def _turn(board: Scoreboard, timings: Sequence[Timing]) -> list[float]:
    spent: list[float] = []
    for timing in timings:
        before = board.cycle
        board.place(timing)
        spent.append(float(board.cycle - before))
    return spent


_WARM, _COUNTED = 3, 8


@dataclass(frozen=True)
class Branches:
    """Cycles of branches beside their slot. `predicted`: whether the core predicts branches: those
    backwards as taken, and any to where they went before. `mispredicted`: of a wrong guess, as at
    a loop's end and at a table branch. `taken`: of any other branch that is taken."""

    predicted: bool
    mispredicted: float
    taken: float


@dataclass(frozen=True)
class DualIssueCore:
    """Timing of a core by its table and its rules (`toolchain.cycles.core_timing.CoreTiming`)."""

    name: str
    source: str
    table: Table
    rules: Rules
    branches: Branches

    def block_cycles(self, block: Sequence[Instruction], repeats: bool) -> tuple[float, ...]:
        """Cycles that each instruction of a straight run adds, from memory without wait states.

        `repeats`: the run follows itself. Branches as not taken; where the core predicts that a
        branch backwards, the last of the run, is taken, that is a wrong guess (`taken_cycles`
        takes it off again).
        """
        timings = [timing_of_instruction(each, self.table, self.rules) for each in block]
        cycles = block_cycles(timings, self.rules, repeats)
        if not block:
            return cycles
        return (*cycles[:-1], cycles[-1] + self._not_taken(block[-1]))

    def taken_cycles(
        self,
        branch: Instruction,
        previous: Instruction | None = None,
        target: Instruction | None = None,
    ) -> float:
        """Cycles added to those of `block_cycles` when a branch is taken."""
        if branch.mnemonic in ("le", "letp"):
            return 0.0
        if self.branches.predicted and branch.mnemonic in ("tbb", "tbh"):
            return self.branches.mispredicted
        return self.branches.taken - self._not_taken(branch)

    def overlapped_cycles(self, previous: Instruction, instruction: Instruction) -> float:
        return 0.0

    def _not_taken(self, branch: Instruction) -> float:
        backwards = branch.target is not None and branch.target <= branch.address
        if not (self.branches.predicted and backwards and branch.is_conditional):
            return 0.0
        return 0.0 if branch.mnemonic in ("le", "letp") else self.branches.mispredicted

"""The values that a page shows, as JSON in the page: immutable, and of one version.

A reader of `VERSION` n finds every field below with its meaning; a field may be added without a new
version. Operators, tensors and buffers refer to each other by index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 2


@dataclass(frozen=True)
class Amount:
    """Bytes of one memory. `available`: what the board has, 0 without a limit."""

    name: str
    used: int
    available: int
    parts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Verdict:
    """The answers to the questions that somebody asks first.

    fits          whether RAM and flash hold it; `problem` says why not
    milliseconds  of one inference; None where only instructions are known
    basis         what the time rests on: measured, modelled from a trace, predicted
    compared      what was verified, in a sentence; empty where nothing was
    differing     elements that differ from the reference's; None where nothing was verified
    """

    fits: bool
    problem: str
    ram: Amount
    flash: Amount
    estimated: bool
    milliseconds: float | None
    count: int
    unit: str
    basis: str
    proof: str
    proved: bool
    compared: str
    differing: int | None
    passed: bool | None


@dataclass(frozen=True)
class Tensor:
    """A tensor in the arena. `writer` is a step, -1 for an input; `readers` are steps."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    offset: int
    start: int
    end: int
    writer: int
    readers: tuple[int, ...]


@dataclass(frozen=True)
class Buffer:
    """Bytes of the arena. `runs`: from a step on, its live bytes [bottom, top); the last is empty.

    `kind` is activations, state or scratch; scratch has no tensor, and `name` is its operator's.
    """

    name: str
    kind: str
    offset: int
    bytes: int
    tensors: tuple[int, ...]
    runs: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Bank:
    """A part of the arena, in one memory bank."""

    name: str
    start: int
    bytes: int


@dataclass(frozen=True)
class Step:
    """One entry of the order: its row in `operators`, and the bytes that are live."""

    name: str
    kind: str
    operator: int
    live: int


@dataclass(frozen=True)
class Operator:
    """An operator of the network; the blocks of a split one are together.

    `count` is in the verdict's unit. `constants`: bytes of weights, biases and tables in the model.
    `bound`: the least cycles in which the core can issue what it executed; None without a trace.
    """

    name: str
    kind: str
    place: str
    steps: tuple[int, ...]
    calls: int
    macs: int
    moved: int
    constants: int
    live: int
    scratch: int
    functions: tuple[str, ...]
    count: int
    instructions: int | None
    basis: str
    bound: int | None = None


@dataclass(frozen=True)
class Box:
    """A box of the network's picture, and its centre.

    operators  rows of `operators`: the operator that most work is in, then slices and joins of its
               blocks; none for a tensor that nothing slices
    side       input or output: a tensor of the model, with `shape`; '' for an operator
    """

    name: str
    operators: tuple[int, ...]
    side: str
    shape: tuple[int, ...]
    x: float
    y: float


@dataclass(frozen=True)
class Line:
    """From one box to another, by their numbers, for all `tensors` that the one reads of the other.

    `shape`: that of the largest tensor; `points`: the corners of the line.
    """

    source: int
    target: int
    shape: tuple[int, ...]
    dtype: str
    tensors: int
    bytes: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Network:
    """The picture of the network. `box`: width and height of a box.

    `cuts`: points at which a single line passes from one layer to the next, where the picture may
    go on in another column.
    """

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    cuts: tuple[tuple[float, float], ...]
    box: tuple[float, float]
    width: float
    height: float


@dataclass(frozen=True)
class Choice:
    """A point of RAM, flash and time, and the command that takes it."""

    ram: int
    flash: int
    milliseconds: float | None
    count: int
    slowdown: float
    what: str
    command: str


@dataclass(frozen=True)
class Function:
    """A C function, without what it calls."""

    name: str
    count: int
    instructions: int


@dataclass(frozen=True)
class Build:
    """One model on one board.

    `peak`: the arena beside the most bytes that are live at once, in a sentence.
    """

    title: str
    model: str
    board: str
    what: str
    core: str
    clock_hz: int
    verdict: Verdict
    macs: int
    arena: int
    peak_step: int
    peak: str
    banks: tuple[Bank, ...]
    tensors: tuple[Tensor, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    operators: tuple[Operator, ...]
    network: Network
    choices: tuple[Choice, ...]
    functions: tuple[Function, ...]
    loops: tuple[Mapping[str, Any], ...]
    ends: tuple[Mapping[str, Any], ...]
    verification: Mapping[str, Any] | None
    quantisation: Mapping[str, Any] | None
    notes: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    accuracy: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Change:
    """One figure of two builds."""

    name: str
    unit: str
    first: float | None
    second: float | None


@dataclass(frozen=True)
class OperatorChange:
    """Counts of one operator in two builds; None where a build does not have it."""

    name: str
    kind: str
    first: int | None
    second: int | None


@dataclass(frozen=True)
class Document:
    """All that a page shows: one build, or two of them and what changed.

    `moved`: operators with other counts, the largest difference first; none in other units.
    """

    version: int
    title: str
    command: str
    builds: tuple[Build, ...]
    changes: tuple[Change, ...] = ()
    moved: tuple[OperatorChange, ...] = ()

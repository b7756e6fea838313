"""Time kernels one by one: one firmware holds many, and runs one on request.

Every kernel is generated code, so the firmware consists of single-operator models side by side in
one arena, and the request says which one to run. Each measurement goes to the database at once.
After a pulled cable, or a restart of the program, only missing ones are measured.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from toolchain.boards import Board
from toolchain.boards import board as find_board
from toolchain.cost import Cost
from toolchain.cost.basis import CYCLES, INSTRUCTIONS, Basis
from toolchain.cost.database import Database, Measurement
from toolchain.cost.key import Key, copies_key, operator_key
from toolchain.cost.predicted import predicted_model
from toolchain.cycles.memory_system import MemorySystem
from toolchain.deployment.measurements import basis_of, current_build, known_rows, taken
from toolchain.deployment.modelled_time import NoReader, Reader, find_reader, no_cycles
from toolchain.device.firmware import Firmware
from toolchain.device.flash import flash as flash_board
from toolchain.device.link import BoardFaultError
from toolchain.device.session import Session, open_board
from toolchain.errors import InputError, LinkError, MissingToolError
from toolchain.files import scratch_folder
from toolchain.ir import DType, Graph, Op, Tensor
from toolchain.kernels import cmsis_nn
from toolchain.memory.plan import Plan
from toolchain.ops.lowering import lower
from toolchain.ops.movement.concat import Concat
from toolchain.ops.moves import moves
from toolchain.planner import plan_model
from toolchain.planning.options import PlanOptions
from toolchain.progress import Report, silent
from toolchain.timing.kernel_firmware import Kernel, batches_of, firmware_of, planned_kernels
from toolchain.timing.kernel_shapes import read_shapes

REPLUG_SECONDS = 60.0
_RETRY_SECONDS = 0.5


@dataclass(frozen=True)
class Timing:
    """`known`: kernels that the database had. `skipped`: those without a figure, and why.

    `no_cycles`: why an emulated board's counts are instructions; '' for cycles.
    """

    board: str
    unit: str
    basis: Basis
    no_cycles: str
    measured: tuple[Measurement, ...]
    known: int
    skipped: tuple[str, ...]


class Opener(Protocol):
    """Opens a session, as `open_board` does."""

    def __call__(
        self, source: Firmware, port: str | None, *, trace: MemorySystem | None
    ) -> Session: ...


@dataclass(frozen=True)
class Wire:
    """How the board is reached.

    flash           write the firmware to a real board
    replug_seconds  a line that breaks is opened again for so long
    """

    port: str | None = None
    flash: bool = True
    opener: Opener = open_board
    replug_seconds: float = REPLUG_SECONDS


_WIRE = Wire()


def read_kernels(source: Path, board: str) -> tuple[Kernel, ...]:
    """The distinct kernels of a model file, or of a JSON file of shapes (kernel_shapes)."""
    core = find_board(board).core
    if source.suffix == ".json":
        graphs = read_shapes(source)
        kernels = [Kernel(operator_key(lower(g, core), 0), g) for g in graphs]
        return tuple({kernel.key: kernel for kernel in kernels}.values())
    return plan_kernels(plan_model(source, board, PlanOptions(nearly_free=False)))


def plan_kernels(plan: Plan) -> tuple[Kernel, ...]:
    """The distinct kernels that a plan runs, including copies; pure views are not kernels, nor are
    branches and loops."""
    kernels: dict[Key, Kernel] = {}
    for number, op in enumerate(plan.graph.ops):
        wanted = moves(op, plan.graph, plan.arena)
        if plan.lowered.kernels[number].nested:
            continue  # its time depends on data
        if wanted is None:
            key = operator_key(plan.lowered, number)
            graph, preference = _alone(op, plan.graph), plan.lowered.preference
            (first,) = lower(graph, plan.lowered.core, preference).kernels
            several = len(first.forms()) > 1
            title = plan.lowered.kernels[number].title if several else ""
            alone = Kernel(key, graph, preference=preference, title=title)
            kernels.setdefault(key, alone)
        elif wanted:
            copying = copies_kernel(tuple(sorted(move.size_bytes for move in wanted)))
            kernels.setdefault(copying.key, copying)
    return tuple(kernels.values())


def copies_kernel(sizes: tuple[int, ...]) -> Kernel:
    """Copies alone: parts of so many bytes that are concatenated elsewhere."""
    parts = [Tensor(f"part{i}", (size,), DType.INT8) for i, size in enumerate(sizes)]
    whole = Tensor("whole", (sum(sizes),), DType.INT8)
    names = tuple(part.name for part in parts)
    op = Op("concat", "copies", names, ("whole",), Concat(0))
    graph = Graph.build("copies", [*parts, whole], [op], names, ["whole"])
    return Kernel(copies_key(sizes), graph, sizes)


def _alone(op: Op, graph: Graph) -> Graph:
    names = dict.fromkeys((*op.present_inputs(), *op.outputs))
    tensors = [graph.tensors[name] for name in names]
    states = [state for state in graph.states if state.output in op.outputs]
    inner = {name for state in states for name in (state.input, state.output)}
    outputs = [name for name in op.outputs if name not in inner]
    inputs = [
        t.name
        for t in tensors
        if not t.is_constant and t.name not in op.outputs and t.name not in inner
    ]
    return Graph.build(op.name, tensors, [op], inputs, outputs, states)


def timed_unit(board: Board, port: str | None = None) -> str:
    """The unit in which `time_kernels` counts: cycles, but instructions for an emulated board that
    cannot be traced here.
    """
    return INSTRUCTIONS if no_cycles(board, port) else CYCLES


def time_kernels(
    kernels: Sequence[Kernel],
    board: str,
    *,
    read_as: str = "",
    wire: Wire = _WIRE,
    runs: int = 5,
    again: bool = False,
    cmsis_nn_folder: Path | None = None,
    database: Database | None = None,
    report: Report = silent,
) -> Timing:
    """Time what the database lacks (everything, if `again`), `runs` times each: in cycles, unless
    an emulated board's cannot be modelled here.

    If the line stays broken, LinkError is raised, and the next call continues where this one
    stopped. `read_as`: another board; the trace of an emulated one is read and stored as its time.
    Errors are those of `find_reader`.
    """
    target = find_board(board)
    if target.is_host or target.counter is None:
        raise InputError("nothing is counted on this machine: name a board, or one in QEMU")
    timed = find_board(read_as or board)
    root = cmsis_nn.find(cmsis_nn_folder, report=report)
    build = current_build(root)
    if build is None:
        raise MissingToolError("there is no cross compiler: `thimble doctor` says how to get it")
    unit, basis = timed_unit(target, wire.port), basis_of(target)
    store = database or Database()
    rows = () if again else known_rows(store, timed.name, build)
    have = {row.key for row in rows if (row.unit, row.basis) == (unit, basis)}
    lacking = [kernel for kernel in kernels if kernel.key not in have]
    measured: list[Measurement] = []
    skipped: list[str] = []
    done = 0
    for batch in batches_of(planned_kernels(lacking, target, skipped), target):
        with scratch_folder() as scratch:
            report("compiling kernels", done, len(lacking))
            firmware = firmware_of(batch, target, root, scratch)
            if target.emulator is None and wire.flash:
                report(f"flashing {board}", done, len(lacking))
                flash_board(firmware)
            reader = find_reader(firmware, wire.port, read_as)
            with _Line(firmware, wire, reader) as line:
                for index, (kernel, plan) in enumerate(batch):
                    report(f"timing on {board}", done, len(lacking))
                    done += 1
                    try:
                        counts = line.times(index, runs)
                    except BoardFaultError as error:
                        skipped.append(f"{kernel.key.shape}: {error}")
                        continue
                    estimate = _estimate(kernel, plan, timed).count
                    entry = taken(timed.name, kernel.key, build, unit, basis, counts, estimate)
                    store.put([entry])
                    measured.append(entry)
    known = len(kernels) - len(lacking)
    why = no_cycles(target, wire.port)
    return Timing(timed.name, unit, basis, why, tuple(measured), known, tuple(skipped))


def _estimate(kernel: Kernel, plan: Plan, target: Board) -> Cost:
    if kernel.copies:
        return predicted_model(target).copies(kernel.copies)
    return predicted_model(target).cost(plan.lowered, 0)


class _Line:
    """A session that is opened anew where the line breaks."""

    def __init__(self, firmware: Firmware, wire: Wire, reader: Reader | NoReader) -> None:
        self._firmware, self._wire = firmware, wire
        self._reader = None if isinstance(reader, NoReader) else reader
        self._session: Session | None = None

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def times(self, index: int, runs: int) -> list[int]:
        """The counts of a kernel. Raises BoardFaultError at once, other LinkErrors after the
        patience is over.
        """
        counts = [self._time(index) for _ in range(runs)]
        if self._reader is None or self._session is None:
            return counts
        modelled = self._reader.read(self._session.trace().last(runs))
        return [run.operators[0] for run in modelled.runs]

    def _time(self, index: int) -> int:
        deadline: float | None = None
        while True:
            try:
                if self._session is None:
                    memory = self._reader.memory if self._reader else None
                    self._session = self._wire.opener(self._firmware, self._wire.port, trace=memory)
                return self._session.time_kernel(index)
            except BoardFaultError:
                self._close()
                raise
            except LinkError:
                self._close()
                now = time.monotonic()
                deadline = deadline or now + self._wire.replug_seconds
                if now > deadline:
                    raise
                time.sleep(min(_RETRY_SECONDS, self._wire.replug_seconds))

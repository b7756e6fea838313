"""Run a compiled model on a board or on this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from toolchain.cost.basis import CYCLES, Basis, milliseconds
from toolchain.cycles.trace import Trace
from toolchain.deployment.folder import (
    CompiledModel,
    check_result,
    check_unchanged,
    compiled_model,
)
from toolchain.deployment.modelled_time import ModelledTime, Reader
from toolchain.device import host
from toolchain.device.firmware import Firmware, load_firmware
from toolchain.device.patience import RUN_SECONDS
from toolchain.device.session import (
    MemoryUse,
    OperatorCount,
    Run,
    Session,
    StateLostError,
    open_board,
    pattern_inputs,
)
from toolchain.errors import InputError
from toolchain.ir import DType, Graph, Sources
from toolchain.ops.movement.gather import as_indices
from toolchain.progress import Report, silent

Array = NDArray[np.generic]
_LOSSES_BORNE = 2


@dataclass(frozen=True)
class Inference:
    """One inference in the model's own types: outputs by name, and its count."""

    outputs: Mapping[str, Array]
    count: int
    unit: str


@dataclass(frozen=True)
class RunTime:
    """An inference and its operators in `unit`; `instructions` where they are known."""

    total: int
    unit: str
    basis: Basis
    clock_hz: int
    operators: tuple[int, ...] = ()
    instructions: int | None = None

    @property
    def milliseconds(self) -> float | None:
        return milliseconds(self.total, self.unit, self.clock_hz)


def counted_time(clock_hz: int, count: int, unit: str) -> RunTime:
    """The time of an inference by a board's own counter, at the clock that the board said."""
    if unit == CYCLES:
        return RunTime(count, unit, Basis.MEASURED, clock_hz)
    return RunTime(count, unit, Basis.TRACE, clock_hz, instructions=count)


class Runner(Protocol):
    """A session that runs a compiled model on the graph's types: with a board, or on the host."""

    def run(self, inputs: Mapping[str, Array]) -> Run: ...

    def operator_counts(self) -> tuple[OperatorCount, ...]: ...

    def memory_use(self) -> MemoryUse: ...

    def clear_state(self) -> None: ...


class _HostSession:
    """A model on this machine, where nothing is counted."""

    def __init__(self, program: host.HostProgram, ends: Graph) -> None:
        self.program = program
        self.ends = ends
        self._restart = True

    def run(self, inputs: Mapping[str, Array]) -> Run:
        given = [inputs[name] for name in self.ends.inputs]
        results = self.program.run(given, restart=self._restart)
        self._restart = False
        return Run(dict(zip(self.ends.outputs, results, strict=True)), 0, "instructions")

    def clear_state(self) -> None:
        self._restart = True

    def operator_counts(self) -> tuple[OperatorCount, ...]:
        return ()

    def memory_use(self) -> MemoryUse:
        return MemoryUse(0, 0)


class Deployment:
    """A compiled model on a running board. Takes and returns the model's own types.

    `stateful`: the model keeps values from run to run, until `clear_state`. `reader`: reads what
    an emulated board executes as cycles, where its session is traced.
    """

    def __init__(
        self, session: Runner, compiled: CompiledModel, reader: Reader | None = None
    ) -> None:
        self.session = session
        self.reader = reader
        self.board = compiled.board
        self.inputs = compiled.inputs
        self.outputs = compiled.outputs
        self.stateful = compiled.stateful
        self._index_limits = compiled.index_limits

    @property
    def ran_on(self) -> str:
        """The name of the board that runs it: the compiled one, or one that stands for it."""
        session = self.session
        return session.firmware.board.name if isinstance(session, Session) else self.board.name

    @property
    def clock_hz(self) -> int:
        """The clock at which counts are cycles: as the board has set it, or that of its file where
        the board does not say."""
        told = self.session.hello.clock_hz if isinstance(self.session, Session) else 0
        return told or self.board.clock_hz

    def run(self, inputs: Mapping[str, Array]) -> Inference:
        """One inference. `inputs` are by name, in the model's own shape and type.

        Raises InputError for a missing, extra or misshapen input, LinkError where the board fails.
        """
        extra = set(inputs) - {end.name for end in self.inputs}
        if extra:
            known = ", ".join(end.name for end in self.inputs)
            raise InputError(f"the model has no input {sorted(extra)[0]!r}; it has: {known}")
        converted: dict[str, Array] = {}
        for end in self.inputs:
            if end.name not in inputs:
                raise InputError(f"input {end.name!r} is missing")
            values = np.asarray(inputs[end.name])
            expected = end.model_dtype.value
            if values.dtype.name != expected or values.size != end.tensor.elements:
                raise InputError(
                    f"input {end.name!r} takes {expected}{list(end.model_shape)}, "
                    f"not {values.dtype.name}{list(values.shape)}"
                )
            converted[end.name] = end.to_graph(values.reshape(end.model_shape))
        return self._inference(self.session.run(converted))

    def run_sequence(
        self, frames: Sequence[Mapping[str, Array]], report: Report = silent
    ) -> Inference:
        """Inferences one after another; the state is reset before the first.

        If there are several, outputs are stacked along a new first axis, and the count is the
        largest. Raises as `run` does.
        """
        done = self._sequence(frames, report)
        if len(done) == 1:
            return done[0]
        outputs = {end.name: np.stack([d.outputs[end.name] for d in done]) for end in self.outputs}
        return Inference(outputs, max(d.count for d in done), done[0].unit)

    def _sequence(self, frames: Sequence[Mapping[str, Array]], report: Report) -> list[Inference]:
        """All frames in turn; once more from the first where the board lost the state."""
        for _ in range(_LOSSES_BORNE):
            with contextlib.suppress(StateLostError):
                return self._in_turn(frames, report)
        return self._in_turn(frames, report)

    def _in_turn(self, frames: Sequence[Mapping[str, Array]], report: Report) -> list[Inference]:
        self.clear_state()
        done: list[Inference] = []
        for frame in frames:
            report("running", len(done), len(frames))
            done.append(self.run(frame))
        return done

    def _inference(self, done: Run) -> Inference:
        outputs = {end.name: end.to_model(done.outputs[end.name]) for end in self.outputs}
        return Inference(outputs, done.count, done.unit)

    def clear_state(self) -> None:
        """Give the model's state its initial value, as before the first run."""
        if self.stateful:
            self.session.clear_state()

    def random(self, rng: np.random.Generator) -> dict[str, Array]:
        """Random inputs, over the range that the graph's tensors hold; of inputs that choose from a
        table, indices of its rows."""
        inputs = {end.name: end.random(rng) for end in self.inputs}
        for name in self._index_limits.keys() & inputs.keys():
            inputs[name] = as_indices(inputs[name], self._index_limits[name])
        return inputs

    def pattern(self, seed: int) -> dict[str, Array] | None:
        """Random inputs that the board can generate itself, for `run_pattern`.

        None where it cannot: on the host, and for a model whose inputs are not bytes.
        """
        bytes_only = all(
            end.tensor.dtype is DType.INT8 and end.model_dtype is not DType.FLOAT32
            for end in self.inputs
        )
        if not isinstance(self.session, Session) or not bytes_only:
            return None
        made = pattern_inputs(self.session.firmware, seed)
        return {end.name: end.to_model(made[end.name]) for end in self.inputs}

    def run_pattern(self, seed: int) -> Inference:
        """One inference on `pattern(seed)`, without sending it through the serial port."""
        if not isinstance(self.session, Session):
            raise InputError("only a board makes its own inputs")
        return self._inference(self.session.run_pattern(seed))

    def operator_counts(self) -> tuple[OperatorCount, ...]:
        """The count of each operator in the last run."""
        return self.session.operator_counts()

    def memory_use(self) -> MemoryUse:
        """Bytes of stack and arena that have been overwritten since the last reset."""
        return self.session.memory_use()

    def trace(self) -> Trace:
        """The trace of an emulated board so far. Raises InputError where it is not traced."""
        if not isinstance(self.session, Session):
            raise InputError("nothing is traced on this machine")
        return self.session.trace()

    def modelled_time(self) -> ModelledTime | None:
        """The time of each run so far, modelled from its trace; None where none is traced."""
        return None if self.reader is None else self.reader.read(self.trace())

    def run_time(self, done: Inference) -> RunTime:
        """The time of `done`, which is the longest of the runs so far, and of its operators."""
        if self.reader is None:
            operators = tuple(op.count for op in self.operator_counts())
            return replace(counted_time(self.clock_hz, done.count, done.unit), operators=operators)
        modelled = self.reader.read_longest(self.trace())
        (run,) = modelled.runs
        return RunTime(run.total, CYCLES, Basis.TRACE, modelled.clock_hz, run.operators, done.count)


@contextmanager
def deployed(
    folder: str | Path,
    port: str | None = None,
    reader: Reader | None = None,
    weights: Path | None = None,
    limit_seconds: float = RUN_SECONDS,
    firmware: Firmware | None = None,
) -> Iterator[Deployment]:
    """The model compiled into `folder`, running on its board (see `open_board`).

    `reader` (of `find_reader`): trace it, so that `Deployment.modelled_time` knows cycles.
    `weights`: another blob, which an emulated board is started with at the address of its own.
    `limit_seconds`: of one inference; one that takes longer is stopped, with an InputError.
    `firmware`: the folder's, or one of its C for another board (`firmware_here`).
    """
    path = Path(folder)
    before = check_result(path)
    compiled = compiled_model(path)
    board = compiled.board if firmware is None else firmware.board
    if weights is not None and (port or not board.emulator):
        raise InputError("only an emulated board is started with other weights: write them to it")
    if compiled.board.is_host:
        tensors = {end.name: end.tensor for end in (*compiled.inputs, *compiled.outputs)}.values()
        inputs, outputs = (
            [end.name for end in side] for side in (compiled.inputs, compiled.outputs)
        )
        ends = Graph.build(path.name, tensors, (), inputs, outputs)
        built = Sources(path.name, {}, (), (), (), (), (), (), 0)
        model = host.HostModel(built, ends)
        if not (path / host.PROGRAM).exists():
            raise InputError(f"{path} holds no program: compile into it, without --library")
        with host.HostProgram(path / host.PROGRAM, [model], limit_seconds) as program:
            check_unchanged(path, before)
            yield Deployment(_HostSession(program, ends), compiled)
    else:
        firmware = firmware or load_firmware(path)
        if weights is not None:
            firmware = firmware.with_weights(weights)
        trace = reader.memory if reader else None
        with open_board(firmware, port, trace=trace, limit_seconds=limit_seconds) as session:
            check_unchanged(path, before)
            yield Deployment(session, compiled, reader)

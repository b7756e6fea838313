"""A board that runs a firmware: `with open_board(firmware) as board: board.run(inputs)`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, TracebackType

import numpy as np
from numpy.typing import NDArray

from toolchain.boards import Board
from toolchain.cycles.memory_system import MemorySystem
from toolchain.cycles.trace import Trace, TraceFile
from toolchain.device import protocol, trace_plugin
from toolchain.device.answers import check_counts, check_hello, check_ticks, check_use
from toolchain.device.firmware import Firmware, Port, load_firmware
from toolchain.device.link import (
    BoardFaultError,
    BoardResetError,
    Link,
    SilentError,
    Transport,
    open_transport,
)
from toolchain.device.patience import RUN_SECONDS, too_slow
from toolchain.device.ports import NoPortError, find_port
from toolchain.device.protocol import Hello, Type
from toolchain.device.qemu import Machine, TraceRequest
from toolchain.errors import InputError, LinkError
from toolchain.ir import meaning_of

Array = NDArray[np.generic]
_HANDSHAKE_SECONDS = 10.0
_EMULATED_SECONDS = 60.0
"""Seconds of silence: an emulator that ends says so, and one that lives may be slow on a busy
machine."""
_PLUG_SECONDS = 3.0
_RESETS_BORNE = 2


@dataclass(frozen=True)
class OperatorCount:
    """The count of one operator. `blocks`: the plan's names of the operators counted in it."""

    name: str
    kind: str
    count: int
    blocks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """One inference. Counts are in `unit`, 'instructions' (QEMU) or 'cycles' (silicon), of
    `clock_hz` where the board said at what clock it runs (else 0)."""

    outputs: Mapping[str, Array]
    count: int
    unit: str
    clock_hz: int = 0


@dataclass(frozen=True)
class MemoryUse:
    """Most bytes used since reset, found by painting stack and arena beforehand."""

    stack_bytes: int
    arena_bytes: int


class Tracing:
    """The file in which an emulator leaves its counts, for as long as it runs."""

    def __init__(self, memory: MemorySystem) -> None:
        self._memory = memory
        self._folder = tempfile.TemporaryDirectory(prefix="thimble-trace-")
        self._file = Path(self._folder.name) / "counts.txt"
        self._trace = TraceFile(self._file, memory.region_names)

    def request(self, firmware: Firmware) -> TraceRequest:
        """The request for a trace of a firmware. Raises MissingToolError or InputError where it
        cannot be traced."""
        arguments = self._memory.plugin_arguments()
        return trace_plugin.request(firmware.board, firmware.elf, arguments, self._file)

    def read(self) -> Trace:
        return self._trace.read()

    def end(self) -> None:
        self._folder.cleanup()


class StateLostError(LinkError):
    """The board was reset between inferences of a model that keeps values between them."""

    def __init__(self) -> None:
        super().__init__(
            "the board was reset in the middle, and the model's state with it: "
            "begin the sequence again from its first frame"
        )


class Session:
    """An open line to a board that runs the expected firmware."""

    def __init__(
        self,
        firmware: Firmware,
        transport: Transport,
        machine: Machine | None,
        link: Link | None = None,
        tracing: Tracing | None = None,
        limit_seconds: float = RUN_SECONDS,
    ) -> None:
        self._limit_seconds = limit_seconds
        self.firmware = firmware
        self.machine = machine
        self._tracing = tracing
        self._ticks: int | None = None
        self.link = link or (Link(transport, _EMULATED_SECONDS) if machine else Link(transport))
        self.hello = self.greet()

    def greet(self) -> Hello:
        """Say HELLO, which is needed after each reset, and check the firmware's identity.

        Raises LinkError if the board does not answer, and as `check_hello`.
        """
        patience = _EMULATED_SECONDS if self.machine else _HANDSHAKE_SECONDS
        hello = protocol.parse_hello(self.link.handshake(patience, self.firmware.index))
        check_hello(hello, self.firmware)
        return hello

    def choose(self, index: int) -> None:
        """Switch to another of the firmware's models; the arena's contents are lost.

        Raises InputError if there is none of that index, LinkError as `greet` does.
        """
        models = self.firmware.models
        if not 0 <= index < len(models):
            names = ", ".join(model.name for model in models)
            raise InputError(f"the firmware has no model {index}; it has: {names}")
        self.firmware = replace(self.firmware, index=index)
        self.hello = self.greet()

    def _whole(self, inference: Callable[[], Run]) -> Run:
        """`inference`, from its inputs on; once more where the board was reset in the middle.

        Raises StateLostError where that would give other values: the model has a state.
        """
        for _ in range(_RESETS_BORNE):
            try:
                return inference()
            except BoardResetError as error:
                self.greet()
                if self.firmware.model.stateful:
                    raise StateLostError from error
        return inference()

    def run(self, inputs: Mapping[str, Array] | Sequence[Array]) -> Run:
        """One inference on arrays of the model's own types and shapes.

        Raises InputError for an array that does not fit, LinkError if the board fails, and
        StateLostError if a reset in the middle cannot be recovered from.
        """
        data = [_as_bytes(port, array) for port, array in self._matched(inputs)]

        def inference() -> Run:
            for index, given in enumerate(data):
                self.write_input(index, given)
            return self._run()

        return self._whole(inference)

    def run_pattern(self, seed: int, given: Mapping[str, Array] = MappingProxyType({})) -> Run:
        """One inference on the inputs of `pattern_inputs(firmware, seed)`, made on the board.

        Writing a big image through the emulated serial port takes seconds; this takes none. Inputs
        in `given`, by name, are written instead: a float of random bytes may be no number.
        """

        def inference() -> Run:
            for index, port in enumerate(self.firmware.model.inputs):
                if port.name in given:
                    self.write_input(index, _as_bytes(port, given[port.name]))
                    continue
                payload = bytes((index,)) + _input_seed(seed, index).to_bytes(4, "little")
                self.link.request(Type.PATTERN, payload, timeout_seconds=self._limit_seconds)
            return self._run()

        return self._whole(inference)

    def time_kernel(self, index: int, seed: int = 1) -> int:
        """The count of kernel `index`, of a firmware of kernels, on pseudo-random bytes.

        Raises LinkError if the kernel fails or the board does not answer.
        """
        payload = index.to_bytes(2, "little") + seed.to_bytes(4, "little")
        for attempt in range(_RESETS_BORNE + 1):
            try:
                reply = self.link.request(Type.TIME, payload, timeout_seconds=self._limit_seconds)
                done = self._outcome(reply)
                break
            except BoardResetError:
                if attempt == _RESETS_BORNE:
                    raise
                self.greet()
        if done.status:
            raise LinkError(f"kernel {index} failed on the board with status {done.status}")
        return self._counted(done.ticks)

    def _run(self) -> Run:
        ticks = self._inference()
        outputs = {
            port.name: _from_bytes(port, self.read_output(index, port.size_bytes))
            for index, port in enumerate(self.firmware.model.outputs)
        }
        return Run(outputs, self._counted(ticks), self.hello.unit, self.hello.clock_hz)

    def _inference(self) -> int:
        """The ticks of one inference."""
        try:
            reply = self.link.request(Type.RUN, timeout_seconds=self._limit_seconds)
        except BoardFaultError as error:
            raise self._located(error) from error
        except SilentError as error:
            board, name = self.firmware.board.name, self.firmware.model.name
            if self.machine is not None:
                inference = f"an inference of {name} on {board}, in QEMU,"
                raise too_slow(inference, self._limit_seconds) from error
            inference = f"{error}. Or an inference of {name} on {board}"
            raise too_slow(inference, self._limit_seconds, LinkError) from error
        done = self._outcome(reply)
        if done.status:
            who = self._who(done.status)
            raise LinkError(f"the model failed on the board with status {done.status}{who}")
        self._ticks = done.ticks
        return done.ticks

    def repeat(self) -> None:
        """Run the model on what its arena holds; outputs are not read. Raises as `run` does."""
        self._inference()

    def operator_counts(self) -> tuple[OperatorCount, ...]:
        """The count of each operator in the last run; () without counters. Raises LinkError for
        counts that cannot be of that run.
        """
        ticks: list[int] = []
        while (left := self.hello.operators - len(ticks)) > 0:
            payload = self.link.request(Type.COUNTS, len(ticks).to_bytes(2, "little"))
            counts = protocol.parse_counts(payload)
            if not 0 < len(counts) <= left:
                raise LinkError(
                    f"the board sent {len(counts)} counts where {left} of "
                    f"{self.hello.operators} operators are left"
                )
            ticks += counts
        check_counts(ticks, self._ticks)
        return tuple(
            OperatorCount(op.name, op.kind, self._counted(count), op.blocks)
            for op, count in zip(self.firmware.model.operators, ticks, strict=bool(ticks))
        )

    def trace(self) -> Trace:
        """The trace of the runs so far. Raises InputError if the board was opened without it."""
        if self._tracing is None:
            raise InputError("this board is not traced: open it with a memory system")
        return self._tracing.read()

    def memory_use(self) -> MemoryUse:
        reply = self.link.request(Type.MEMORY, timeout_seconds=self._limit_seconds)
        use = MemoryUse(*protocol.parse_words(reply, 2))
        check_use("stack", use.stack_bytes, self.hello.stack_bytes)
        check_use("arena", use.arena_bytes, self.hello.arena_bytes)
        return use

    def last_fault(self) -> protocol.Fault | None:
        """The fault that the board recorded before its last reset, if any."""
        try:
            reply = self.link.request(Type.FAULT)
        except BoardResetError:
            self.greet()
            reply = self.link.request(Type.FAULT)
        return protocol.parse_fault(reply)

    def reset(self) -> None:
        """Restart the firmware and wait until it answers."""
        with contextlib.suppress(BoardResetError):  # done already, and the reply was lost
            self.link.request(Type.RESET)
        self.greet()

    def clear_state(self) -> None:
        """Give the model's state its initial value, as at power-on."""
        try:
            self.link.request(Type.CLEAR)
        except BoardResetError:
            self.greet()
            self.link.request(Type.CLEAR)

    def describe(self) -> tuple[protocol.TensorInfo, ...]:
        """The board's own description of its inputs, then of its outputs."""
        which = [(0, i) for i in range(self.hello.inputs)]
        which += [(1, i) for i in range(self.hello.outputs)]
        return tuple(
            protocol.parse_describe(self.link.request(Type.DESCRIBE, bytes(pair))) for pair in which
        )

    def close(self) -> None:
        self.link.close()
        if self.machine is not None:
            self.machine.stop()
        if self._tracing is not None:
            self._tracing.end()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _matched(self, inputs: Mapping[str, Array] | Sequence[Array]) -> list[tuple[Port, Array]]:
        ports = self.firmware.model.inputs
        names = ", ".join(port.name for port in ports)
        if isinstance(inputs, Mapping):
            if set(inputs) != {port.name for port in ports}:
                raise InputError(f"the model's inputs are {names}, not {', '.join(inputs)}")
            return [(port, inputs[port.name]) for port in ports]
        if len(inputs) != len(ports):
            raise InputError(f"{len(inputs)} arrays for {len(ports)} inputs ({names})")
        return list(zip(ports, inputs, strict=True))

    def write_input(self, index: int, data: bytes) -> None:
        """Write the bytes of input `index`, in several frames. Raises as `Link.request` does."""
        step = self.hello.data_bytes
        for offset in range(0, len(data), step):
            chunk = data[offset : offset + step]
            self.link.request(Type.WRITE, bytes((index,)) + offset.to_bytes(4, "little") + chunk)

    def read_output(self, index: int, size: int) -> bytes:
        """The first `size` bytes of output `index`. Raises as `Link.request` does."""
        step, data = self.hello.data_bytes, bytearray()
        while len(data) < size:
            length = min(step, size - len(data))
            place = bytes((index,)) + len(data).to_bytes(4, "little") + length.to_bytes(2, "little")
            chunk = self.link.request(Type.READ, place)
            if len(chunk) != length:
                raise LinkError(f"the board sent {len(chunk)} bytes of an output, not {length}")
            data += chunk
        return bytes(data)

    def _outcome(self, reply: bytes) -> protocol.Outcome:
        """The outcome of a run. Raises BoardResetError if another model ran than the one greeted,
        LinkError as `check_ticks` does."""
        done = protocol.parse_outcome(reply)
        identity = bytes.fromhex(self.firmware.build_id)[:4] + bytes((self.firmware.index,))
        if done.identity != identity:
            raise BoardResetError
        check_ticks(done.ticks, self.link.answer_seconds, self.firmware.board, self.hello.clock_hz)
        return done

    def _counted(self, ticks: int) -> int:
        counter = self.firmware.board.counter
        return round(ticks * counter.per_tick) if counter else ticks

    def _who(self, status: int) -> str:
        """The operator that failed, for a message: generated code returns its number, from 1."""
        if meaning_of(status):
            return f" ({meaning_of(status)})"
        if status in protocol.BESIDE:
            return f" (the memory beside the chip {protocol.BESIDE[status]})"
        operators = self.firmware.model.operators
        return f" (operator {operators[status - 1].name!r})" if 0 < status <= len(operators) else ""

    def _located(self, error: BoardFaultError) -> LinkError:
        """The error, with the name of the operator that ran."""
        index, operators = error.fault.operator, self.firmware.model.operators
        if index is None or index >= len(operators):
            return error
        located = BoardFaultError(error.fault)
        located.args = (f"in operator {index} ({operators[index].name!r}): {error}",)
        return located


def _input_seed(seed: int, index: int) -> int:
    """A 32-bit seed other than 0 for input `index`, far from those of its neighbours."""
    return (seed + index * 0x9E3779B9) % (1 << 32) or 1


def pattern_inputs(firmware: Firmware, seed: int) -> dict[str, Array]:
    """The pseudo-random inputs that `Session.run_pattern` makes on the board from `seed`."""
    return {
        port.name: _from_bytes(port, protocol.pattern(_input_seed(seed, index), port.size_bytes))
        for index, port in enumerate(firmware.model.inputs)
    }


def _as_bytes(port: Port, array: Array) -> bytes:
    if array.dtype != port.dtype.numpy or array.size * array.itemsize != port.size_bytes:
        raise InputError(
            f"input {port.name!r} takes {port.dtype.value} of shape {port.shape}, "
            f"not {array.dtype} of shape {array.shape}"
        )
    return array.astype(port.dtype.numpy.newbyteorder("<")).tobytes()


def _from_bytes(port: Port, data: bytes) -> Array:
    stored = np.frombuffer(data, port.dtype.numpy.newbyteorder("<"))
    return stored.astype(port.dtype.numpy).reshape(port.shape)


def open_board(
    source: Firmware | Path | str,
    port: str | None = None,
    *,
    trace: MemorySystem | None = None,
    limit_seconds: float = RUN_SECONDS,
) -> Session:
    """Connect to the board that runs a firmware, or start it in QEMU if it is an emulated one.

    `source`: a built firmware or its folder. `port`: a serial device or a pyserial URL. Without
    one, an emulated board is started, and a real one is at `$THIMBLE_PORT` or found by the USB
    identity in its file. `trace`: count what an emulated board executes, with these regions and
    caches (`Session.trace`). `limit_seconds`: of one inference. Raises InputError if that is
    ambiguous or a board that is not started here is to be traced, LinkError if the board does not
    answer or runs another firmware, MissingToolError where nothing can be traced
    (`trace_plugin.unavailable` says why).
    """
    firmware = source if isinstance(source, Firmware) else load_firmware(Path(source))
    board = firmware.board
    name = port or (None if board.emulator else os.environ.get("THIMBLE_PORT") or _port(firmware))
    if name is not None:
        if trace is not None:
            raise InputError(f"only an emulated board can be traced, not the one at {name}")
        baud = board.uart.baud if board.uart else 115_200
        return _over_serial(firmware, name, baud, limit_seconds)
    with contextlib.ExitStack() as undone:
        tracing = Tracing(trace) if trace is not None else None
        if tracing is not None:
            undone.callback(tracing.end)
        request = tracing.request(firmware) if tracing else None
        machine = Machine(board, firmware.elf, request, images=firmware.images)
        undone.callback(machine.stop)
        session = Session(firmware, machine.transport, machine, None, tracing, limit_seconds)
        undone.pop_all()
    return session


def is_here(board: Board, port: str | None = None) -> bool:
    """Whether `open_board` has a board to talk to: an emulated one, or one at a port that is named
    or found. Raises InputError where several ports could be the board's.
    """
    if port or board.emulator or os.environ.get("THIMBLE_PORT"):
        return True
    try:
        find_port(board, patience_seconds=_PLUG_SECONDS)
    except NoPortError:
        return False
    return True


def _port(firmware: Firmware) -> str:
    try:
        return find_port(firmware.board, patience_seconds=_PLUG_SECONDS)
    except InputError as error:
        name = firmware.board.name
        raise type(error)(
            f"{name} is not emulated: {firmware.to_flash}, and plug it in; {error}"
        ) from error


def _over_serial(firmware: Firmware, port: str, baud: int, limit_seconds: float) -> Session:
    transport = open_transport(port, baud)
    try:
        return Session(firmware, transport, None, limit_seconds=limit_seconds)
    except BaseException:
        transport.close()
        raise

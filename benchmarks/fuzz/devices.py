"""The level `devices`: a stand-in for a board tells lies, and the session must end in one message.

It speaks the protocol as the probe's firmware does. In each case one to four of its answers are
changed: a field of the payload, its length, the type, the sequence, or the bytes on the line. Time
is that of the stand-in, so that nothing is waited for.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.fuzz.outcome import (
    ANSWERED,
    HANG,
    WRONG,
    Outcome,
    of_error,
    reason,
    time_limit,
)
from benchmarks.fuzz.pool import Serve
from tests.support.mutations import INTEGERS
from toolchain.bench.probe_model import BYTES, PROBE, probe_input, probe_output
from toolchain.boards import board
from toolchain.device import protocol
from toolchain.device.firmware import Firmware, Sizes
from toolchain.device.link import Link
from toolchain.device.protocol import CRASHED, ERROR, REPLY, TYPE_CODES, Frame, Type
from toolchain.device.session import Session
from toolchain.errors import LinkError
from toolchain.files.printable import printable
from toolchain.ir import DType

_CASE_SECONDS = 20.0
_MOST_REQUESTS = 20_000
"""An honest session of this model needs fifty."""
_DATA_BYTES = 256
_BUILD = bytes(range(16))
_FAULT_WORDS = 18
_TEXTS = (b"\xff\xfe", b"\x1b[2J", "\u202egnp.exe".encode(), b"a" * 200, b"", b"%s\n")
_SIZES = (0, 1, 4, 5, 8, 16, 17, 100)


class _EndlessError(Exception):
    """The session asks on and on."""


class _StandIn:
    """A transport and the board behind it. `clock` is its time in seconds."""

    def __init__(self, rng: random.Random, lies: frozenset[int]) -> None:
        self._rng, self._lies = rng, lies
        self._decoder, self._waiting = protocol.Decoder(), bytearray()
        self._memory, self._output = bytearray(BYTES), bytes(BYTES)
        self._requests, self._now = 0, 0.0

    def clock(self) -> float:
        return self._now

    def read(self, timeout_seconds: float) -> bytes:
        data, self._waiting = bytes(self._waiting), bytearray()
        self._now += 0.001 if data else max(timeout_seconds, 0.001)
        return data

    def close(self) -> None:
        self._waiting.clear()

    def write(self, data: bytes) -> None:
        for raw in self._decoder.feed(data):
            request = protocol.decode(raw)
            self._requests += 1
            if self._requests > _MOST_REQUESTS:
                raise _EndlessError
            answer = Frame(request.sequence, request.type | REPLY, self._answer(request))
            if self._requests in self._lies:
                self._waiting += self._lie(answer)
            else:
                self._waiting += protocol.DELIMITER + protocol.encode(answer)

    def _answer(self, request: Frame) -> bytes:
        kind, payload = Type(request.type), request.payload
        if kind is Type.HELLO:
            head = struct.pack("<BHHHHII16s", 1, _DATA_BYTES, 1, 1, 2, 1216, 4096, _BUILD)
            return head + b"probe-board\0probe\0\1"
        if kind is Type.DESCRIBE:
            name = b"probe/out:0" if payload[0] else b"probe/in:0"
            return struct.pack("<IB", BYTES, TYPE_CODES[DType.INT8]) + name + b"\0"
        if kind is Type.WRITE:
            at = int.from_bytes(payload[1:5], "little")
            self._memory[at : at + len(payload) - 5] = payload[5:]
            return b""
        if kind in (Type.RUN, Type.TIME):
            given = np.frombuffer(bytes(self._memory[:BYTES]), np.int8)
            self._output = probe_output(given).tobytes()
            return struct.pack("<iQ5s", 0, 1000, _BUILD[:4] + b"\0")
        if kind is Type.READ:
            at, size = struct.unpack_from("<IH", payload, 1)
            return self._output[at : at + size]
        if kind is Type.COUNTS:
            first = int.from_bytes(payload, "little")
            return struct.pack(f"<{max(0, 2 - first)}Q", *range(first, 2))
        return struct.pack("<II", 512, 1216) if kind is Type.MEMORY else b""

    def _lie(self, frame: Frame) -> bytes:
        rng, how = self._rng, self._rng.randrange(12)
        if how == 0:
            frame = replace(frame, type=rng.choice((*range(256), ERROR, CRASHED)))
        elif how == 1:
            frame = replace(frame, sequence=rng.choice((0, 1, frame.sequence ^ 1, 2**32 - 1)))
        elif how == 2:
            frame = replace(frame, version=rng.randrange(256))
        elif how == 3:
            frame = replace(frame, type=ERROR, payload=rng.randbytes(rng.choice((0, 1, 1, 2))))
            if rng.random() < 0.5:
                frame = replace(frame, payload=bytes((rng.randrange(12),)))
        elif how == 4:
            words = rng.randbytes(4 * rng.choice((_FAULT_WORDS, 0, 1, _FAULT_WORDS + 1)))
            frame = replace(frame, type=rng.choice((CRASHED, frame.type)), payload=words)
        elif how == 5:
            return rng.randbytes(rng.choice((0, 1, 300))) + b"\0"
        else:
            frame = replace(frame, payload=_changed(frame.payload, rng))
        encoded = protocol.DELIMITER + protocol.encode(frame)
        return encoded * rng.choice((1, 1, 1, 2))


def _changed(payload: bytes, rng: random.Random) -> bytes:
    """A field of a payload: one, two, four or eight bytes at once, a text, its length."""
    result, how = bytearray(payload), rng.randrange(6)
    if how == 0:
        return rng.randbytes(rng.choice(_SIZES))
    if how == 1:
        return bytes(result[: rng.randrange(len(result) + 1)])
    if how == 2:
        at = rng.randrange(len(result) + 1)
        result[at:at] = rng.choice(_TEXTS)
        return bytes(result)
    size = rng.choice((1, 2, 4, 8))
    if len(result) >= size:
        at = rng.randrange(len(result) - size + 1)
        value = rng.choice((*INTEGERS, rng.getrandbits(64))) % (1 << 8 * size)
        result[at : at + size] = value.to_bytes(size, "little")
    return bytes(result)


def liar(seed: int) -> Serve:
    """The level `devices`."""
    firmware = Firmware(
        Path("firmware"),
        board("netduinoplus2"),
        (PROBE,),
        Sizes(1, 1, 1, 1, 1216, 4096),
        _BUILD.hex(),
    )

    def serve(numbers: Sequence[int], begun: Callable[[int], None]) -> Iterator[Outcome]:
        for number in numbers:
            begun(number)
            yield _told(seed, number, firmware)

    return serve


def _told(seed: int, number: int, firmware: Firmware) -> Outcome:
    rng = random.Random(f"device {seed} {number}")
    lies = frozenset(rng.randint(1, 24) for _ in range(rng.choice((0, 1, 1, 1, 2, 4))))
    line = _StandIn(rng, lies)
    try:
        with time_limit(_CASE_SECONDS):
            message = _session(firmware, line, rng, honest=not lies)
    except LinkError as error:
        message = str(error)
    except _EndlessError:
        return Outcome(number, HANG, "requests without end")
    except AssertionError as error:
        return Outcome(number, WRONG, str(error)[:120])
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return of_error(number, error)
    if not printable(message).replace("\n", "").replace("\t", "").isprintable():
        return Outcome(number, WRONG, "what cannot be printed", repr(message)[:300])
    return Outcome(number, ANSWERED, reason(message))


def _session(firmware: Firmware, line: _StandIn, rng: random.Random, *, honest: bool) -> str:
    """All that a session asks; what the commands print of it. Raises LinkError."""
    session = Session(firmware, line, None, Link(line, clock=line.clock))
    told = [session.hello.board, session.hello.model]
    data = probe_input(np.random.default_rng(rng.getrandbits(32)))
    steps: list[Callable[[], object]] = [
        session.describe,
        session.operator_counts,
        session.memory_use,
        session.last_fault,
        session.clear_state,
        lambda: session.time_kernel(0),
        lambda: session.run([data]),
    ]
    rng.shuffle(steps)
    for step in steps:
        step()
    got = session.run([data]).outputs["probe/out:0"]
    assert not honest or np.array_equal(got, probe_output(data)), "an honest board's bytes"
    told += [tensor.name for tensor in session.describe()]
    told += [f"{found.name} {found.count}" for found in session.operator_counts()]
    return " ".join(told)

"""A board that answers by the protocol, and lies: in one field of its answers, or with its line."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from tests.support.line import FaultyLine
from toolchain.device import protocol
from toolchain.device.protocol import DELIMITER, ERROR, REPLY, Decoder, Frame, Type

Lie = Callable[[Frame], list[Frame]]
Field = tuple[Type, str, int, str]
"""The answer, the field, its place and its struct's letter."""

FIELDS: tuple[Field, ...] = (
    (Type.HELLO, "flags", 0, "B"),
    (Type.HELLO, "data", 1, "H"),
    (Type.HELLO, "inputs", 3, "H"),
    (Type.HELLO, "outputs", 5, "H"),
    (Type.HELLO, "operators", 7, "H"),
    (Type.HELLO, "arena", 9, "I"),
    (Type.HELLO, "stack", 13, "I"),
    (Type.HELLO, "build", 17, "Q"),
    (Type.HELLO, "models", -17, "B"),
    (Type.HELLO, "clock", -16, "I"),
    (Type.HELLO, "identity", -12, "I"),
    (Type.HELLO, "beside", -8, "i"),
    (Type.HELLO, "beside identity", -4, "I"),
    (Type.DESCRIBE, "size", 0, "I"),
    (Type.DESCRIBE, "type", 4, "B"),
    (Type.RUN, "status", 0, "i"),
    (Type.RUN, "ticks", 4, "Q"),
    (Type.RUN, "build", 12, "I"),
    (Type.RUN, "model", 16, "B"),
    (Type.COUNTS, "first", 0, "Q"),
    (Type.COUNTS, "second", 8, "Q"),
    (Type.MEMORY, "stack", 0, "I"),
    (Type.MEMORY, "arena", 4, "I"),
)
TEXTS = (
    b"",
    b"\x1b]0;owned\x07\x1b[2J",
    "\u202egpj.exe\u2066".encode(),
    b"\xff\xfe\xed\xa0\x80",
    b"n" * 5000,
)
ANSWERS = (
    *(Type.HELLO, Type.DESCRIBE, Type.WRITE, Type.RUN, Type.READ, Type.COUNTS, Type.MEMORY),
    *(Type.FAULT, Type.RESET, Type.PATTERN, Type.CLEAR),
)


def values(letter: str) -> Iterator[int]:
    """The ends of a type's range, and small numbers."""
    bits = 8 * struct.calcsize(letter)
    signed = letter.islower()
    yield from (0, 1, 3, 255)
    yield (1 << bits - 1) - 1
    yield -(1 << bits - 1) if signed else (1 << bits) - 1
    yield -1 if signed else (1 << bits) - 8


def other_value(kind: Type, place: int, letter: str, value: int) -> Lie:
    def lie(frame: Frame) -> list[Frame]:
        data = bytearray(frame.payload)
        struct.pack_into(f"<{letter}", data, place % len(data), value)
        return [replace(frame, payload=bytes(data))]

    return _of(kind, lie)


def other_names(kind: Type, text: bytes, end: bytes = b"\0") -> Lie:
    """Of HELLO both names, of DESCRIBE its one; `end` terminates them, or does not."""

    def lie(frame: Frame) -> list[Frame]:
        fixed, after = (33, frame.payload[-17:]) if kind is Type.HELLO else (5, b"")
        names = (text + end) * (2 if kind is Type.HELLO else 1)
        return [replace(frame, payload=frame.payload[:fixed] + names + after)]

    return _of(kind, lie)


def other_length(kind: Type, change: int) -> Lie:
    """An answer of fewer bytes (0: of none), or of more."""

    def lie(frame: Frame) -> list[Frame]:
        payload = frame.payload[:change] if change <= 0 else frame.payload + bytes(change)
        return [replace(frame, payload=payload)]

    return _of(kind, lie)


def other_frame(kind: Type, **changes: int) -> Lie:
    return _of(kind, lambda frame: [replace(frame, **changes)])  # type: ignore[arg-type]


def error(kind: Type, payload: bytes, sequence: int | None = None) -> Lie:
    def lie(frame: Frame) -> list[Frame]:
        number = frame.sequence if sequence is None else sequence
        return [Frame(number, ERROR, payload)]

    return _of(kind, lie)


def often(kind: Type, times: int) -> Lie:
    return _of(kind, lambda frame: [frame] * times)


def _of(kind: Type, lie: Lie) -> Lie:
    return lambda frame: lie(frame) if frame.type == kind | REPLY else [frame]


@dataclass
class Liar:
    """A transport to the board of `line`. `noise`: what it sends without end beside its answers,
    from `silent_after` answers on; `exchanges` counts what is written."""

    line: FaultyLine
    lie: Lie = lambda frame: [frame]
    noise: bytes = b""
    exchanges: int = 0
    _decoder: Decoder = field(default_factory=Decoder)

    def write(self, data: bytes) -> None:
        self.exchanges += 1
        self.line.write(data)

    def read(self, timeout_seconds: float) -> bytes:
        sent = b""
        for raw in self._decoder.feed(self.line.read(0.0 if self.noise else timeout_seconds)):
            sent += b"".join(map(protocol.encode, self.lie(protocol.decode(raw))))
        if self.noise:
            self.line.seconds += timeout_seconds / 4 + 0.001
            sent = DELIMITER + sent + self.noise if sent else self.noise
        return sent

    def close(self) -> None:
        self.line.close()

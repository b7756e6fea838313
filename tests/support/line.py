"""A board at the end of a bad line, in virtual time: the real C of the protocol, compiled here."""

from __future__ import annotations

import ctypes
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from toolchain.device.protocol import DELIMITER
from toolchain.errors import LinkError
from toolchain.resources import RUNTIME_C

FIRMWARE = RUNTIME_C / "firmware"
SOURCE = Path(__file__).parent / "firmware" / "line.c"
TENSOR_BYTES = 600
_ROOM_BYTES = 1 << 16
_BYTE_SECONDS = 10 / 115_200


def compile_line(folder: Path) -> ctypes.CDLL:
    """The service loop as a library, trapping where its behaviour is undefined."""
    target = folder / "line.so"
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1", "-DTHIMBLE_EMULATED"]
    flags += ["-DTHIMBLE_COUNTER_REGISTER=0"]
    trap = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-shared", "-fPIC"]
    places = [f"-I{FIRMWARE}", f"-I{FIRMWARE / 'include'}"]
    sources = [str(SOURCE), str(FIRMWARE / "frame.c")]
    subprocess.run(["gcc", *flags, *trap, *places, *sources, "-o", str(target)], check=True)
    library = ctypes.CDLL(str(target))
    library.line_feed.restype = ctypes.c_size_t
    return library


def line_output(data: NDArray[np.int8]) -> NDArray[np.int8]:
    """What the board's model gives for an input."""
    steps = np.arange(TENSOR_BYTES, dtype=np.uint64)
    return (3 * data.view(np.uint8) + steps).astype(np.uint8).view(np.int8)


def line_counts(data: NDArray[np.int8]) -> tuple[int, int]:
    """What its two operators are said to take."""
    whole = int(data.view(np.uint8).sum(dtype=np.int64))
    return whole, whole // 2


@dataclass
class FaultyLine:
    """A transport to the board on which a share `rate` of what passes is harmed.

    `seconds` is virtual time; `happened` counts the faults by kind.
    """

    library: ctypes.CDLL
    rng: np.random.Generator
    rate: float
    seconds: float = 0.0
    happened: Counter[str] = field(default_factory=Counter)
    _coming: list[tuple[float, bytes]] = field(default_factory=list)
    _old: list[bytes] = field(default_factory=list)
    _pulled: bool = False

    def clock(self) -> float:
        return self.seconds

    def power_on(self, which: int = 0) -> None:
        self.library.line_power_on(ctypes.c_uint32(which))

    def replug(self) -> None:
        """A new connection to the same board; late copies of the earlier ones may yet come."""
        if self.rng.random() < 0.5:
            self._coming.clear()
        self._pulled = False

    def close(self) -> None:
        self._pulled = True

    def _strikes(self, kind: str, share: float = 1.0) -> bool:
        if self.rng.random() >= self.rate * share:
            return False
        self.happened[kind] += 1
        return True

    def _at(self, data: bytes) -> int:
        return int(self.rng.integers(len(data)))

    def _harmed(self, data: bytes) -> bytes:
        """Noise, lost bytes, and copies of whole frames at once."""
        if self._strikes("flipped bit"):
            at = self._at(data)
            bit = 1 << int(self.rng.integers(8))
            data = data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]
        if self._strikes("lost bytes", 0.5):
            at = self._at(data)
            data = data[:at] + data[at + int(self.rng.integers(1, 9)) :]
        if self._strikes("noise", 0.5):
            at = int(self.rng.integers(len(data) + 1))
            data = data[:at] + self.rng.bytes(int(self.rng.integers(1, 12))) + data[at:]
        if self._strikes("duplicated", 0.7):
            data += data
        if self._strikes("lost frame", 0.3):
            data = b""
        return data

    def _feed(self, data: bytes) -> bytes:
        replies = ctypes.create_string_buffer(_ROOM_BYTES)
        count = self.library.line_feed(
            data, ctypes.c_size_t(len(data)), replies, ctypes.c_size_t(_ROOM_BYTES)
        )
        return replies.raw[:count]

    def write(self, data: bytes) -> None:
        if self._pulled or self._strikes("cable pulled", 0.02):
            self._pulled = True
            raise LinkError("the line to the board broke")
        self.seconds += len(data) * _BYTE_SECONDS
        sent = self._harmed(data)
        if self._old and self._strikes("late copy"):
            sent = self._old[self._at(bytes(len(self._old)))] + DELIMITER + sent
        self._old = [*self._old[-39:], data]
        if sent and self._strikes("reset", 0.1):
            cut = self._at(sent)
            answers = self._feed(sent[:cut])
            other = bool(self.rng.random() < 0.2)
            self.happened["another firmware"] += other
            self.power_on(1 if other else 0)
            answers += self._feed(sent[cut:])
        else:
            answers = self._feed(sent)
        if answers:
            answers = self._harmed(answers)
        delay = 0.001
        if self._strikes("slow", 0.2):
            delay = float(self.rng.uniform(0.1, 5.0))
        if answers:
            ready = max([self.seconds + delay, *(when for when, _ in self._coming)])
            self._coming.append((ready, answers))

    def read(self, timeout_seconds: float) -> bytes:
        if self._pulled:
            raise LinkError("the line to the board broke")
        if not self._coming or self._coming[0][0] > self.seconds + timeout_seconds:
            self.seconds += timeout_seconds
            return b""
        when, data = self._coming.pop(0)
        self.seconds = max(self.seconds, when) + len(data) * _BYTE_SECONDS
        return data

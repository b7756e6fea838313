"""The serial protocol (docs/protocol.md): frames, requests, replies. No input or output here."""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from toolchain.errors import LinkError
from toolchain.ir import DType

VERSION = 2
DELIMITER = b"\0"
_BLOCK_DATA = 254
_CRC_BYTES = 4
_HEADER_BYTES = 6
_LONGEST_FRAME_BYTES = 1 << 17
"""As it is sent. HELLO tells of 65,535 bytes of data at most, and stuffing adds less than 1%."""
_LONGEST_NAME_BYTES = 64


class Type(IntEnum):
    """Request types. A reply has the same with the top bit set."""

    HELLO = 0x01
    DESCRIBE = 0x02
    WRITE = 0x03
    RUN = 0x04
    READ = 0x05
    COUNTS = 0x06
    MEMORY = 0x07
    FAULT = 0x08
    RESET = 0x09
    EXIT = 0x0A
    PATTERN = 0x0B
    TIME = 0x0C
    CLEAR = 0x0D


REPLY = 0x80
CRASHED = 0xFE
ERROR = 0xFF


class ErrorCode(IntEnum):
    """Why the board refused a frame. The first three mean that the line damaged it."""

    CHECKSUM = 1
    MALFORMED = 2
    TOO_LONG = 3
    VERSION = 4
    TYPE = 5
    LENGTH = 6
    INDEX = 7
    RANGE = 8
    ORDER = 9

    @property
    def damaged_on_the_line(self) -> bool:
        return self <= ErrorCode.TOO_LONG


class Flags(IntFlag):
    """The flags of a HELLO reply."""

    CYCLES = 1
    FAULT_RECORDED = 2
    CAN_EXIT = 4


TYPE_CODES = {
    DType.INT8: 1,
    DType.UINT8: 2,
    DType.INT16: 3,
    DType.INT32: 4,
    DType.INT64: 5,
    DType.FLOAT32: 6,
    DType.BOOL: 7,
    DType.UINT32: 8,
    DType.UINT64: 9,
}


class FrameError(LinkError):
    """A frame that arrived damaged."""


class VersionError(LinkError):
    """The firmware on the board was built by another Thimble."""

    def __init__(self, version: int | None = None) -> None:
        spoken = "another version" if version is None else f"version {version}"
        super().__init__(
            f"the board speaks {spoken} of the protocol, not {VERSION}: compile and flash again"
        )


@dataclass(frozen=True)
class Frame:
    """A decoded body without its checksum."""

    sequence: int
    type: int
    payload: bytes = b""
    version: int = VERSION


def pattern(seed: int, size_bytes: int) -> bytes:
    """The bytes that PATTERN fills an input with: the top bytes of xorshift32 (Marsaglia, 2003).

    `seed` is a 32-bit number other than 0.
    """
    if not 0 < seed < 1 << 32:
        raise ValueError(f"the seed {seed} is not in 1 .. 2^32 - 1")
    state, filled = seed, bytearray(size_bytes)
    for i in range(size_bytes):
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        filled[i] = state >> 24
    return bytes(filled)


def cobs_encode(data: bytes) -> bytes:
    """Consistent overhead byte stuffing (Cheshire and Baker, 1999): no zero byte in the result."""
    encoded, run = bytearray(), b""
    for run in data.split(b"\0"):
        whole = len(run) // _BLOCK_DATA * _BLOCK_DATA
        for start in range(0, whole, _BLOCK_DATA):
            encoded.append(_BLOCK_DATA + 1)
            encoded += run[start : start + _BLOCK_DATA]
        encoded.append(len(run) - whole + 1)
        encoded += run[whole:]
    if run and len(run) % _BLOCK_DATA == 0:
        del encoded[-1]  # a full block that ends the data needs no empty one after it
    return bytes(encoded)


def cobs_decode(data: bytes) -> bytes:
    """The inverse. Raises FrameError where a block is longer than what is left."""
    decoded = bytearray()
    position = 0
    while position < len(data):
        code = data[position]
        block = data[position + 1 : position + code]
        if code == 0 or len(block) != code - 1:
            raise FrameError("a frame from the board is damaged: its stuffing is wrong")
        decoded += block
        position += code
        if code != _BLOCK_DATA + 1 and position < len(data):
            decoded.append(0)
    return bytes(decoded)


def encode(frame: Frame) -> bytes:
    """A frame as it is sent, with the delimiter that ends it."""
    header = bytes((frame.version, frame.type)) + frame.sequence.to_bytes(4, "little")
    body = header + frame.payload
    checksum = zlib.crc32(body).to_bytes(_CRC_BYTES, "little")
    return cobs_encode(body + checksum) + DELIMITER


def decode(data: bytes) -> Frame:
    """A frame from its bytes without the delimiter.

    Raises FrameError if they are damaged, VersionError for an undamaged one of another version.
    """
    if len(data) > _LONGEST_FRAME_BYTES:
        raise FrameError("a frame from the board is damaged: it has no end")
    body = cobs_decode(data)
    if len(body) <= _CRC_BYTES:
        raise FrameError("a frame from the board is damaged: it is too short")
    content, checksum = body[:-_CRC_BYTES], body[-_CRC_BYTES:]
    if zlib.crc32(content).to_bytes(_CRC_BYTES, "little") != checksum:
        raise FrameError("a frame from the board is damaged: its checksum is wrong")
    if content[0] != VERSION:
        raise VersionError(content[0])
    if len(content) < _HEADER_BYTES:
        raise FrameError("a frame from the board is damaged: it is too short")
    sequence = int.from_bytes(content[2:_HEADER_BYTES], "little")
    return Frame(sequence, content[1], content[_HEADER_BYTES:])


class Decoder:
    """Cuts a stream of bytes into frames."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._frames: deque[bytes] = deque()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that end within `data`, still encoded, without delimiters or empty ones.

        Bytes without end are passed on in pieces, which are damaged frames.
        """
        first, *others = data.split(DELIMITER)
        self._pending += first
        if not others and len(self._pending) > _LONGEST_FRAME_BYTES:
            others = [b""]
        if others:
            *more, rest = others
            self._frames += filter(None, (bytes(self._pending), *more))
            self._pending = bytearray(rest)
        while self._frames:
            yield self._frames.popleft()


BESIDE = {
    -40: "does not answer: is it there, and has it a supply?",
    -41: "is none that the firmware knows",
    -42: "does not hold the weights of this firmware",
}
"""Faults of the memory beside the chip, by the status that HELLO and RUN tell."""


@dataclass(frozen=True)
class Hello:
    """The reply to HELLO. `data_bytes`: the most tensor data that one frame carries.

    `clock_hz`: the core's clock as the board's registers have it, `identity`: its DBGMCU_IDCODE; 0
    where the board does not say. `beside`: what is wrong with the memory beside the chip
    (`BESIDE`), and `beside_identity` its JEDEC identity, the manufacturer in the lowest byte.
    """

    flags: Flags
    data_bytes: int
    inputs: int
    outputs: int
    operators: int
    arena_bytes: int
    stack_bytes: int
    build_id: str
    board: str
    model: str
    models: int = 1
    clock_hz: int = 0
    identity: int = 0
    beside: int = 0
    beside_identity: int = 0

    @property
    def device_id(self) -> int:
        """DEV_ID, the low bits of DBGMCU_IDCODE."""
        return self.identity & 0xFFF

    @property
    def revision_id(self) -> int:
        """REV_ID, the high bits of DBGMCU_IDCODE."""
        return self.identity >> 16

    @property
    def unit(self) -> str:
        return "cycles" if self.flags & Flags.CYCLES else "instructions"


@dataclass(frozen=True)
class TensorInfo:
    """The reply to DESCRIBE: an input or output as the board knows it."""

    name: str
    size_bytes: int
    dtype: DType


_HELLO = struct.Struct("<BHHHHII16s")
_CHIP = struct.Struct("<IIiI")
_DESCRIBE = struct.Struct("<IB")
_DTYPES = {code: dtype for dtype, code in TYPE_CODES.items()}


def _names(data: bytes, count: int) -> tuple[list[str], bytes]:
    """Terminated names, and what follows them."""
    *parts, rest = data.split(b"\0", count)
    if len(parts) != count:
        raise LinkError("the board's answer is not of this protocol: a name is not terminated")
    longest = max(map(len, parts))
    if longest > _LONGEST_NAME_BYTES:
        raise LinkError(f"the board's answer is not of this protocol: a name of {longest} bytes")
    return [part.decode("utf-8", "replace") for part in parts], rest


def parse_hello(payload: bytes) -> Hello:
    """Parse the reply to HELLO. Raises LinkError if the payload is too short."""
    if len(payload) < _HELLO.size:
        raise LinkError("the board's hello is too short: is this Thimble's firmware?")
    flags, data, inputs, outputs, operators, arena, stack, build_id = _HELLO.unpack_from(payload)
    (board, model), rest = _names(payload[_HELLO.size :], 2)
    if len(rest) not in (1, 1 + _CHIP.size):
        raise LinkError("the board's hello does not end with how many models it has, or its chip")
    chip = _CHIP.unpack(rest[1:]) if rest[1:] else (0, 0, 0, 0)  # an older firmware: none
    clock_hz, identity, beside, beside_identity = chip
    return Hello(
        flags=Flags(flags),
        data_bytes=data,
        inputs=inputs,
        outputs=outputs,
        operators=operators,
        arena_bytes=arena,
        stack_bytes=stack,
        build_id=build_id.hex(),
        board=board,
        model=model,
        models=rest[0],
        clock_hz=clock_hz,
        identity=identity,
        beside=beside,
        beside_identity=beside_identity,
    )


def parse_describe(payload: bytes) -> TensorInfo:
    """Parse the reply to DESCRIBE. Raises LinkError if it is too short, or names an unknown
    type."""
    if len(payload) < _DESCRIBE.size:
        raise LinkError("the board's description of a tensor is too short")
    size, code = _DESCRIBE.unpack_from(payload)
    (name,), _ = _names(payload[_DESCRIBE.size :], 1)
    if code not in _DTYPES:
        raise LinkError(f"the board says that tensor {name!r} has the unknown type {code}")
    return TensorInfo(name, size, _DTYPES[code])


@dataclass(frozen=True)
class Outcome:
    """The answer to RUN and TIME. `status` is 0 for success; `identity` gives firmware and
    model.
    """

    status: int
    ticks: int
    identity: bytes


_OUTCOME = struct.Struct("<iQ5s")


def parse_outcome(payload: bytes) -> Outcome:
    """Parse the reply to RUN or TIME. Raises LinkError if its length is wrong."""
    if len(payload) != _OUTCOME.size:
        raise LinkError(f"the board's outcome of a run has {len(payload)} bytes")
    return Outcome(*_OUTCOME.unpack(payload))


def parse_counts(payload: bytes) -> tuple[int, ...]:
    """Parse little-endian 64-bit counts."""
    if len(payload) % 8:
        raise LinkError(f"the board answered with {len(payload)} bytes instead of counts")
    return struct.unpack(f"<{len(payload) // 8}Q", payload)


def parse_words(payload: bytes, count: int | None = None) -> tuple[int, ...]:
    """Parse little-endian 32-bit words; raises LinkError unless there are `count` of them."""
    if len(payload) % 4 or (count is not None and len(payload) != 4 * count):
        raise LinkError(f"the board answered with {len(payload)} bytes instead of {count} words")
    return struct.unpack(f"<{len(payload) // 4}I", payload)


@dataclass(frozen=True)
class Fault:
    """The registers at a fault (Arm DDI 0403 B1.5, B3.2). `operator`: index of the running one."""

    registers: tuple[tuple[str, int], ...]
    operator: int | None

    def register(self, name: str) -> int:
        return dict(self.registers)[name]

    def __str__(self) -> str:
        values = " ".join(f"{name}={value:08x}" for name, value in self.registers)
        return f"{self.reason()}; {values}"

    def reason(self) -> str:
        """The fault status bits as text."""
        cfsr = self.register("cfsr")
        reasons = [text for bit, text in _CFSR_BITS.items() if cfsr >> bit & 1]
        if self.register("hfsr") & 2:
            reasons.append("no vector table at the vector's address")
        if self._overflowed():
            reasons.insert(0, "the stack overflowed")
        if not reasons and self.register("ipsr") == _HARD_FAULT:
            return "a HardFault, whose cause the core does not tell"
        return ", ".join(reasons) or f"exception {self.register('ipsr')}"

    def _overflowed(self) -> bool:
        stkof = self.register("cfsr") >> 20 & 1
        return bool(stkof) or self.register("sp") < self.register("stack_low")


_FAULT_NAMES = (
    *("r0", "r1", "r2", "r3", "r12", "lr", "pc", "psr", "sp", "exc_return", "ipsr"),
    *("cfsr", "hfsr", "mmfar", "bfar", "operator", "stack_low", "reserved"),
)
_NO_OPERATOR = 0xFFFFFFFF
_HARD_FAULT = 3
_CFSR_BITS = {
    0: "an instruction was fetched from where none may lie",
    1: "a data access where none is allowed",
    3: "memory fault on return from an exception",
    4: "memory fault on entry to an exception",
    5: "memory fault while saving the FPU state",
    8: "bus error on an instruction fetch",
    9: "bus error at the address in bfar",
    10: "bus error, later than the instruction at pc",
    11: "bus error on return from an exception",
    12: "bus error on entry to an exception",
    13: "bus error while saving the FPU state",
    16: "undefined instruction",
    17: "switch out of Thumb state",
    18: "wrong return from an exception",
    19: "the FPU or Helium is off",
    20: "the stack overflowed its limit",
    24: "unaligned access",
    25: "division by zero",
}


def parse_fault(payload: bytes) -> Fault | None:
    """The recorded fault; None if the board has none on record."""
    if not payload:
        return None
    words = dict(zip(_FAULT_NAMES, parse_words(payload, len(_FAULT_NAMES)), strict=True))
    operator = words.pop("operator")
    words.pop("reserved")
    return Fault(tuple(words.items()), None if operator == _NO_OPERATOR else operator)

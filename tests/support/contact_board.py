"""A stand-in for a board that runs the contact firmware, with faults that a real one could have.

It speaks the protocol and answers the firmware's commands; time is its own, so that nothing is
waited for.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from toolchain.contact.commands import ANSWER_WORDS, COMMAND_WORDS, LANDINGS, Command
from toolchain.contact.firmware import images, pairs
from toolchain.cycles.core_timing import timing_of
from toolchain.cycles.memory_system import MemorySystem
from toolchain.device import protocol
from toolchain.device.firmware import Firmware
from toolchain.device.link import Link
from toolchain.device.protocol import CRASHED, DELIMITER, REPLY, Frame, Type
from toolchain.device.session import Session

_DATA_BYTES, _STACK_BYTES = 256, 2048
_ALL, _RAM = 0xFFFF_FFFF, 0x2000_0000
_BFAR_VALID, _FAULT_WORDS, _CFSR, _BFAR = 1 << 9 | 1 << 15, 18, 11, 14
_OVERHEAD_SECONDS = 0.004
"""Of every request on the line."""


@dataclass(frozen=True)
class Faults:
    """What is wrong.

    clock_hz, told_hz  the core's clock, and what its registers say; 0: as its file says
    identity       DBGMCU_IDCODE; 0: the board's
    stuck          bits of RAM that are always 1, by address
    ram_end        reads and writes from here on fault
    flash          whether the CRC of flash is right, wrong, or another each time
    beside         the status of the memory beside the chip, where it is used
    beside_bytes   whether the flash beside the chip reads the same again: right or unstable
    stall          cycles that a read of a new line of flash waits
    stuck_switch   bits of prefetch and caches that do not change
    dear_switch    cycles that a read in sequence takes longer for each of these bits that is clear
    pairs          how many times as long as by the table pairs of instructions take
    garbage        what is sent in place of frames
    silent_after   requests that are answered
    """

    clock_hz: int = 0
    told_hz: int = 0
    identity: int = 0
    stuck: Mapping[int, int] = field(default_factory=dict)
    ram_end: int = _ALL
    flash: str = "right"
    beside: int = 0
    beside_bytes: str = "right"
    stall: int = 5
    stuck_switch: int = 0
    dear_switch: Mapping[int, int] = field(default_factory=dict)
    pairs: float = 1.0
    garbage: bytes = b""
    silent_after: int = 1 << 30


class ContactBoard:
    """The transport, and the board behind it."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self.now = 0.0
        self.commands: list[Command] = []
        self._decoder, self._waiting = protocol.Decoder(), bytearray()
        self._input, self._answer = bytes(4 * COMMAND_WORDS), bytes(4 * ANSWER_WORDS)
        self._sums, self._requests = 0, 0
        self._firmware: Firmware | None = None
        self.registers: dict[int, int] = {}

    def clock(self) -> float:
        return self.now

    def opened(
        self,
        source: Firmware,
        port: str | None = None,
        *,
        trace: MemorySystem | None = None,
        limit_seconds: float = 60.0,
    ) -> Session:
        """As `open_board`."""
        self._firmware = source
        for one in source.board.chip.switches.values():
            self.registers[one.register] = self.registers.get(one.register, 0) | one.bits
        link = Link(self, clock=self.clock)
        return Session(source, self, None, link, limit_seconds=limit_seconds)

    def flashed(self, firmware: Firmware, wanted: str | None, probe: str) -> None:
        """As `flash`."""
        self._firmware = firmware

    def read(self, timeout_seconds: float) -> bytes:
        data, self._waiting = bytes(self._waiting), bytearray()
        self.now += 0.0 if data else max(timeout_seconds, 0.001)
        return data

    def close(self) -> None:
        self._waiting.clear()

    def write(self, data: bytes) -> None:
        for raw in self._decoder.feed(data):
            self._requests += 1
            self.now += _OVERHEAD_SECONDS
            if self._requests > self.faults.silent_after:
                continue
            if self.faults.garbage:
                self._waiting += self.faults.garbage
                continue
            request = protocol.decode(raw)
            answer = self._served(Type(request.type), request)
            self._waiting += DELIMITER + protocol.encode(answer)

    def _served(self, kind: Type, request: Frame) -> Frame:
        payload = request.payload
        reply = b""
        if kind is Type.HELLO:
            reply = self._hello()
        elif kind is Type.WRITE:
            self._input = payload[5:]
        elif kind is Type.RUN:
            words = struct.unpack(f"<{COMMAND_WORDS}I", self._input)
            fault = self._run(Command(words[0]), words[1:])
            if fault is not None:
                return Frame(request.sequence, CRASHED, fault)
            reply = struct.pack("<iQ5s", 0, 1000, self._build[:4] + b"\0")
        elif kind is Type.READ:
            at, size = struct.unpack_from("<IH", payload, 1)
            reply = self._answer[at : at + size]
        return Frame(request.sequence, kind | REPLY, reply)

    @property
    def _build(self) -> bytes:
        assert self._firmware is not None
        return bytes.fromhex(self._firmware.build_id)

    def _hello(self) -> bytes:
        firmware, faults = self._firmware, self.faults
        assert firmware is not None
        board, arena = firmware.board, firmware.model.arena_bytes
        assert board.chip.identity is not None
        head = struct.pack("<BHHHHII16s", 1, _DATA_BYTES, 1, 1, 0, arena, _STACK_BYTES, self._build)
        chip = struct.pack(
            "<IIiI",
            faults.told_hz or board.clock_hz,
            faults.identity or 0x1000_0000 | board.chip.identity.device_id,
            faults.beside if firmware.folder.name == "contact" else 0,
            0x1840EF if faults.beside else 0,
        )
        return head + b"board\0contact\0\1" + chip

    def _run(self, command: Command, words: tuple[int, ...]) -> bytes | None:
        """Leave the answer; the record of a fault where there is one."""
        firmware, faults = self._firmware, self.faults
        assert firmware is not None
        self.commands.append(command)
        answer: tuple[int, ...] = ()
        if command is Command.WAIT:
            answer = words[:2]
            ticks = words[0] | words[1] << 32
            self.now += ticks / (faults.clock_hz or firmware.board.clock_hz)
        elif command is Command.MARCH:
            start, size = words[:2]
            if start + size > faults.ram_end:
                return self._fault(faults.ram_end)
            for address, bits in faults.stuck.items():
                if start <= address < start + size:
                    answer = (1, address, 0, bits)
        elif command is Command.SUM:
            self._sums += 1
            of_chip = {image.start: image.crc for image in images(firmware)}
            how = faults.flash if words[0] in of_chip else faults.beside_bytes
            wrong = {"right": 0, "wrong": 1, "unstable": self._sums}[how]
            answer = (of_chip.get(words[0], words[1]) ^ wrong,)
        elif command is Command.READ:
            start, _, step, count, none = words[:5]
            assert none == 0
            waits = self.faults.stall if start < _RAM and step not in (0, 4) else 0
            for bits, cycles in faults.dear_switch.items() if step == 4 else ():
                waits += 0 if any(word & bits for word in self.registers.values()) else cycles
            answer = (count * (5 + waits + 3), 0, count * 3, 0)
        elif command is Command.PAIR:
            timing, code = timing_of(firmware.board.core.name), pairs(firmware)[words[0]]
            assert timing is not None
            each = sum(timing.block_cycles(code.instructions, repeats=False))
            answer = (round(each * faults.pairs), 0)
        elif command is Command.BRANCH:
            answer = (LANDINGS * (5 + words[0] * self.faults.stall), 0)
        elif command is Command.SWITCH:
            place, bits, on = words[:3]
            before = self.registers[place]
            changed = bits & ~faults.stuck_switch
            self.registers[place] = before | changed if on else before & ~changed
            answer = (before, self.registers[place])
        elif words[1] in self.registers:
            answer = tuple(self.registers[at] for at in words[1 : 1 + words[0]])
        else:
            answer = tuple(zlib.crc32(struct.pack("<I", at)) for at in words[1 : 1 + words[0]])
        padded = [*answer, *[0] * (ANSWER_WORDS - len(answer))]
        self._answer = struct.pack(f"<{ANSWER_WORDS}I", *padded)
        return None

    def _fault(self, address: int) -> bytes:
        words = [0] * _FAULT_WORDS
        words[_CFSR], words[_BFAR] = _BFAR_VALID, address
        return struct.pack(f"<{_FAULT_WORDS}I", *words)

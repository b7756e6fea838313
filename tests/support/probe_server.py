"""A stand-in for ST's stlink-server with an ST-LINK/V2-1 and a chip behind it.

openocd's own driver speaks to it (`hla_stlink_backend tcp`, src/jtag/drivers/stlink_usb.c), with
the same commands that an ST-LINK gets over USB; pyocd's does with `pyocd_over_tcp.py` in place of
its USB. The chip has what their target and flash code touches: the core's debug registers (Arm DDI
0403 C1.6) and its table of components, the identity, the size of the flash, and a flash controller
that erases and programs only as the reference manuals say. Where unicorn is installed the core runs
what the tools load into its RAM.
"""

from __future__ import annotations

import importlib
import importlib.util
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from toolchain.boards import Board

SERIAL = "066DFF343334554157254635"
FLASH = 0x0800_0000
KEYS = [0x4567_0123, 0xCDEF_89AB]
DHCSR, DCRSR, DCRDR, DEMCR = 0xE000_EDF0, 0xE000_EDF4, 0xE000_EDF8, 0xE000_EDFC
AIRCR, CPUID = 0xE000_ED0C, 0xE000_ED00
RUNS = importlib.util.find_spec("unicorn") is not None
RAM = {0x2000_0000: 1 << 19, 0x2400_0000: 1 << 20}
BEYOND = (
    *((0x4000_0000, 0x2000_0000), (0xE000_0000, 0x0010_0000)),
    *((0x1FF0_0000, 0x0010_0000), (0x08F0_0000, 0x0010_0000)),
)
"""Where registers lie, the core's and those of the chip's identity and size."""
PC, PSR, REGISTERS = 15, 16, 21

ROM_TABLE, SCS = 0xE00F_F000, 0xE000_E000
COMPONENTS = {
    ROM_TABLE: (SCS - ROM_TABLE) & 0xFFFF_FFFF | 3,  # one entry: present, 32 bits
    **{SCS + 0xFD0 + 4 * i: v for i, v in enumerate((4, 0, 0, 0, 0x0C, 0xB0, 0x0B, 0))},
    **{SCS + 0xFF0 + 4 * i: v for i, v in enumerate((0x0D, 0xE0, 0x05, 0xB1))},
    **{ROM_TABLE + 0xFD0 + 4 * i: v for i, v in enumerate((0, 0, 0, 0, 0x50, 0x04, 0x0A, 0))},
    **{ROM_TABLE + 0xFF0 + 4 * i: v for i, v in enumerate((0x0D, 0x10, 0x05, 0xB1))},
}
"""Identities of the core's debug components (Arm DDI 0403 table C1-4, ADIv5 IHI 0031)."""
OK, NO_IDCODE, FAULT = b"\x80\x00", b"\x09\x00", b"\x11\x00"


@dataclass(frozen=True)
class Controller:
    """Registers of one bank's controller from its base, and bits of its control register."""

    bases: tuple[int, ...]
    key: int
    status: int
    control: int
    lock: int
    start: int
    erase: int
    program: int
    number: tuple[int, int]
    """Shift and mask of the sector's number."""


F4_F7 = Controller((0x4002_3C00,), 0x04, 0x0C, 0x10, 1 << 31, 1 << 16, 2, 1, (3, 0x1F))
L4 = Controller((0x4002_2000,), 0x08, 0x10, 0x14, 1 << 31, 1 << 16, 2, 1, (3, 0x1FF))
H74 = Controller((0x5200_2000, 0x5200_2100), 0x04, 0x10, 0x0C, 1, 1 << 7, 4, 2, (8, 7))
H7A = Controller((0x5200_2000, 0x5200_2100), 0x04, 0x10, 0x0C, 1, 1 << 5, 4, 2, (6, 0x7F))


@dataclass(frozen=True)
class Family:
    """`sectors`: sizes in KiB; the last one again and again. `constants`: registers of options."""

    controller: Controller
    size_register: int
    sectors: tuple[int, ...]
    debug_port: int
    cpu: int
    constants: dict[int, int] = field(default_factory=dict)


M4, M7 = 0x410F_C241, 0x411F_C270
F4 = Family(F4_F7, 0x1FFF_7A22, (16, 16, 16, 16, 64, 128), 0x2BA0_1477, M4)
F7 = Family(F4_F7, 0x1FF0_F442, (32, 32, 32, 32, 128, 256), 0x5BA0_2477, M7)
FAMILIES = {
    0x413: F4,
    0x421: F4,
    0x431: F4,
    0x433: F4,
    0x449: F7,
    0x451: F7,
    0x415: Family(L4, 0x1FFF_75E0, (2,), 0x2BA0_1477, M4, {0x4002_2020: 0xFFEF_F8AA}),
    0x470: Family(L4, 0x1FFF_75E0, (4,), 0x2BA0_1477, M4, {0x4002_2020: 0xFFEF_F8AA}),
    0x450: Family(H74, 0x1FF1_E880, (128,), 0x6BA0_2477, M7),
    0x480: Family(H7A, 0x08FF_F80C, (8,), 0x6BA0_2477, M7),
}


class Chip:
    """The one of `board`, its flash full of zeros. `asleep`: it answers only a probe that has
    held it in reset."""

    def __init__(self, board: Board, *, asleep: bool = False) -> None:
        identity = board.chip.identity
        assert identity is not None
        self.family = FAMILIES[identity.device_id]
        self.asleep, self.reset_held, self.halted, self.catches = asleep, False, False, False
        self.flash = bytearray(board.flash_bytes)
        self.words = {
            identity.id_register: 0x2000_0000 | identity.device_id,
            self.family.size_register & ~3: board.flash_bytes // 1024
            << 8 * (self.family.size_register & 2),
            CPUID: self.family.cpu,
            **COMPONENTS,
            **self.family.constants,
        }
        controller = self.family.controller
        self.controls = dict.fromkeys(controller.bases, controller.lock)
        self.keys: dict[int, list[int]] = {base: [] for base in controller.bases}
        if controller is F4_F7:
            self.words[0x4002_3C14] = 0xFFFF_AAED  # OPTCR: nothing is protected
        self.ram = {start: bytearray(size) for start, size in RAM.items()}
        self.registers = [0] * REGISTERS
        self.erased: list[int] = []
        self.resets = 0

    def reaches(self, address: int) -> bool:
        """Only the core's own registers while reset is held, where the bus stands still with it:
        an STM32H7 (target/stm32h7x.cfg)."""
        stands = self.reset_held and self.family.controller in (H74, H7A)
        return not stands or address >= 0xE000_0000

    def _bank_bytes(self) -> int:
        return len(self.flash) // len(self.controls)

    def _sector(self, bank: int, number: int) -> tuple[int, int]:
        sizes = self.family.sectors
        start = sum(sizes[min(i, len(sizes) - 1)] for i in range(number)) * 1024
        return bank * self._bank_bytes() + start, sizes[min(number, len(sizes) - 1)] * 1024

    def _ram(self, address: int) -> tuple[bytearray, int] | None:
        for start, data in self.ram.items():
            if start <= address < start + len(data):
                return data, address - start
        return None

    def read(self, address: int) -> int:
        """An aligned word."""
        if FLASH <= address < FLASH + len(self.flash):
            return int.from_bytes(self.flash[address - FLASH : address - FLASH + 4], "little")
        if place := self._ram(address):
            return int.from_bytes(place[0][place[1] : place[1] + 4], "little")
        if address == DHCSR:
            return 0x0001_0001 | self.halted << 17 | self.halted << 1
        if address == DEMCR:
            return int(self.catches)
        for base, control in self.controls.items():
            if address == base + self.family.controller.control:
                return control
        return self.words.get(address, 0)

    def write(self, address: int, data: bytes) -> None:
        if FLASH <= address < FLASH + len(self.flash):
            self._program(address - FLASH, data)
        elif place := self._ram(address):
            place[0][place[1] : place[1] + len(data)] = data
        else:
            for at in range(0, len(data), 4):
                word = int.from_bytes(data[at : at + 4].ljust(4, b"\0"), "little")
                self._set(address + at, word)

    def run(self) -> None:
        """From the registers on, to a breakpoint instruction, as far as unicorn is installed."""
        unicorn: Any = importlib.import_module("unicorn")
        arm: Any = importlib.import_module("unicorn.arm_const")
        names = [*(f"R{i}" for i in range(13)), "SP", "LR", "PC"]
        numbers = [getattr(arm, f"UC_ARM_REG_{name}") for name in names]
        core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
        for start, data in self.ram.items():
            core.mem_map(start, len(data))
            core.mem_write(start, bytes(data))

        def load(_: object, offset: int, size: int, start: int) -> int:
            at = start + offset
            return self.read(at & ~3) >> 8 * (at & 3) & ((1 << 8 * size) - 1)

        def store(_: object, offset: int, size: int, value: int, start: int) -> None:
            self.write(start + offset, value.to_bytes(8, "little")[:size])

        for start, size in ((FLASH, len(self.flash)), *BEYOND):
            core.mmio_map(start, size, load, start, store, start)
        for number, value in zip(numbers, self.registers, strict=False):
            core.reg_write(number, value)

        def stopped(uc: Any, number: int, data: object) -> None:
            uc.emu_stop()

        core.hook_add(unicorn.UC_HOOK_INTR, stopped)
        core.emu_start(self.registers[PC] | 1, 0xFFFF_FFFE)
        self.registers[: len(numbers)] = [core.reg_read(number) for number in numbers]
        for start, data in self.ram.items():
            data[:] = core.mem_read(start, len(data))
        self.halted = True

    def _program(self, offset: int, data: bytes) -> None:
        control = list(self.controls.values())[offset // self._bank_bytes()]
        if control & self.family.controller.program and not control & self.family.controller.lock:
            for at, byte in enumerate(data, offset):
                self.flash[at] &= byte

    def _set(self, address: int, value: int) -> None:
        controller = self.family.controller
        for bank, base in enumerate(self.controls):
            if address == base + controller.key:
                self.keys[base] = [*self.keys[base], value][-2:]
                if self.keys[base] == KEYS:
                    self.controls[base] &= ~controller.lock
                return
            if address == base + controller.status:  # a written 1 clears, and there is none
                return
            if address == base + controller.control:
                self._control(bank, base, value)
                return
        if address == DHCSR and value >> 16 == 0xA05F:
            was, self.halted = self.halted, bool(value & 2)
            if was and not self.halted and self._ram(self.registers[PC]) and RUNS:
                self.run()
        elif address == DCRDR:
            self.words[DCRDR] = value
        elif address == DCRSR:
            if value & 1 << 16:
                self.registers[value & 0x7F] = self.words.get(DCRDR, 0)
            else:
                self.words[DCRDR] = self.registers[value & 0x7F]
        elif address == DEMCR:
            self.catches = bool(value & 1)
        elif address == AIRCR and value & 4:
            self.reset()
        elif address not in self.words:
            self.words[address] = value

    def _control(self, bank: int, base: int, value: int) -> None:
        controller = self.family.controller
        if self.controls[base] & controller.lock:
            return
        self.controls[base] = value & ~controller.start
        if value & controller.start and value & controller.erase:
            shift, mask = controller.number
            start, size = self._sector(bank, value >> shift & mask)
            self.erased.append(start)
            self.flash[start : start + size] = b"\xff" * size

    def reset(self) -> None:
        self.resets += 1
        self.halted = self.catches
        lock = self.family.controller.lock
        self.controls = dict.fromkeys(self.controls, lock)


class ProbeServer:
    """Serves `chip` behind one ST-LINK, or none where it is None, on `port` of this machine."""

    def __init__(self, chip: Chip | None) -> None:
        self.chip = chip
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._connected = False
        self._status = OK
        self._ports: dict[bytes, int] = {}
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._connected = False
            with client, client.makefile("rb") as coming:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for answer in self._answers(coming):
                    client.sendall(answer)

    def _answers(self, coming: object) -> Iterator[bytes]:
        """To each request of openocd's TCP back end, by its first byte."""
        read = coming.read  # type: ignore[attr-defined]
        done = struct.pack("<I", 1)
        while first := read(1):
            match first[0]:
                case 0x06:  # version of the server
                    read(3)
                    yield struct.pack("<4I", 3, 2, 1, 1)
                case 0x00:  # refresh the list
                    read(1)
                    yield done
                case 0x01:  # how many
                    yield struct.pack("<I", self.chip is not None)
                case 0x02:  # what: id, serial number, vendor, product, whether it is in use
                    read(7)
                    yield done + struct.pack("<I32sHHB", 7, SERIAL.encode(), 0x0483, 0x374B, 0)
                case 0x03:
                    read(7)
                    yield done + struct.pack("<I", 9)
                case 0x04:
                    read(7)
                    yield done
                case _:  # a command of the ST-LINK: direction, size, data
                    head = read(31)
                    writes, size = head[23] == 0, int.from_bytes(head[27:31], "little")
                    answer = self._command(head[7:23], read(size) if writes else b"")
                    yield done if writes else done + answer[:size].ljust(size, b"\0")

    def _command(self, command: bytes, data: bytes) -> bytes:
        assert self.chip is not None
        address = int.from_bytes(command[2:6], "little")
        size = int.from_bytes(command[6:8], "little")
        match command[0], command[1]:
            case 0xF1, _:
                return struct.pack(">H", 2 << 12 | 37 << 6 | 26) + struct.pack(
                    "<HH", 0x0483, 0x374B
                )
            case 0xF5, _:
                return bytes((2 if self._connected else 1, 0))
            case 0xF7, _:
                return struct.pack("<II", 1500, 2062)  # 3.3 V
            case 0xF2, 0x21:
                self._connected = False
            case 0xF2, 0x30:
                if self.chip.asleep and not self.chip.reset_held:
                    return NO_IDCODE
                self._connected = True
            case 0xF2, 0x31:
                return OK + b"\0\0" + struct.pack("<II", self.chip.family.debug_port, 0)
            case 0xF2, 0x32:
                self.chip.reset()
            case 0xF2, 0x33:
                number = command[2] if command[2] < REGISTERS else 0
                return OK + b"\0\0" + struct.pack("<I", self.chip.registers[number])
            case 0xF2, 0x34:
                if command[2] < REGISTERS:
                    value = int.from_bytes(command[3:7], "little")
                    self.chip.registers[command[2]] = value
            case 0xF2, 0x3A:
                return OK + b"\0\0" + struct.pack("<21I", *self.chip.registers)
            case 0xF2, 0x45:
                return OK + b"\0\0" + struct.pack("<I", self._port(command))
            case 0xF2, 0x46:
                self._ports[command[2:6]] = int.from_bytes(command[6:10], "little")
            case 0xF2, 0x35:
                self.chip.write(address, command[6:10])
            case 0xF2, 0x36:
                return OK + b"\0\0" + struct.pack("<I", self.chip.read(address))
            case 0xF2, 0x3C:
                self._drive(command[2])
            case 0xF2, 0x3E:
                return self._status + bytes(10)
            case 0xF2, 0x07 | 0x47 | 0x0C:
                if not self.chip.reaches(address):
                    self._status = FAULT
                    return bytes(size)
                self._status = OK
                start = address & ~3
                words = range(start, address + max(size, 2), 4)
                whole = b"".join(self.chip.read(at).to_bytes(4, "little") for at in words)
                return whole[address - start :]
            case 0xF2, 0x08 | 0x48 | 0x0D:
                self._status = OK if self.chip.reaches(address) else FAULT
                if self._status == OK:
                    self.chip.write(address, data)
        return OK + bytes(10)

    def _port(self, command: bytes) -> int:
        """A register of the debug port (0xffff) or an access port."""
        assert self.chip is not None
        port, register = struct.unpack("<HH", command[2:6])
        written = self._ports.get(command[2:6], 0)
        if port == 0xFFFF:
            powered = (written & 0x5000_0000) << 1 | written
            return {0: self.chip.family.debug_port, 4: powered}.get(register, written)
        if port:  # the H7 has three, of which only the first leads to the core's table
            stm32h7 = self.chip.family.controller in (H74, H7A) and port < 3
            return {0xFC: 0x5477_0002, 0xF8: 0xFFFF_FFFF}.get(register, written) if stm32h7 else 0
        fixed = {0xFC: 0x2477_0011, 0xF8: ROM_TABLE | 3, 0: 0x2300_0052}
        return fixed.get(register, written)

    def _drive(self, level: int) -> None:
        assert self.chip is not None
        if level and self.chip.reset_held:
            self.chip.reset()
        self.chip.reset_held = level == 0


def executable(data: bytes, address: int) -> bytes:
    """An ELF file with one segment to load (ELF specification 1.2, book I)."""
    header = struct.pack(
        *("<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 40, 1, address, 52, 0, 0x0500_0000),
        *(52, 32, 1, 40, 0, 0),
    )
    at = 52 + 32
    segment = struct.pack("<8I", 1, at, address, address, len(data), len(data), 5, 4)
    return header + segment + data

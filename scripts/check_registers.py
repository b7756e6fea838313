#!/usr/bin/env python3
"""Holds every register, bit, interrupt, memory and chip identity that the firmware and the STM32
boards use against ST's and Arm's own headers, and lists what differs.

    scripts/check_registers.py HEADERS [--write] [--tables HEADER [--source UART]...]

HEADERS is a folder with checkouts or bare clones of zephyrproject-rtos/hal_stm32, which carries
ST's headers, LL drivers and pin data of every family, and of ARM-software/CMSIS_6. Needs
arm-none-eabi-gcc. The exit code is 1 where anything differs. `--write` renews
tests/support/firmware/registers/, the addresses and bits that the simulated registers of the tests
are made of, and, where nothing differs, boards/checked.toml, which tells `thimble boards` what was
compared with which revision. `--tables stm32g071xx` prints the [gpio] and [uarts] that a chip's
file needs.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from elftools.elf.elffile import ELFFile

from toolchain.boards import Board, Chip, MemoryKind, boards, chips
from toolchain.boards.checked import FILE as CHECKED
from toolchain.boards.checked import numbers_of
from toolchain.boards.clock import SOURCE
from toolchain.boards.parts import FLASH_KIB, line_of
from toolchain.device import compiler
from toolchain.device.build import BuildOptions, firmware_defines
from toolchain.resources import RUNTIME_C

TABLES = Path(__file__).parent.parent / "tests" / "support" / "firmware" / "registers"
FIRMWARE = RUNTIME_C / "firmware"
INCLUDE = FIRMWARE / "include"
CORE_TABLES = ("registers_cortex_m.h", "registers_armv7m.h")
CORE_REPOSITORY = "CMSIS_6"
DWT_CYCCNT = 0xE0001004
ST_REPOSITORY = "hal_stm32"
UARTS = r"((?:LP)?US?ART\d+)"

# RAM without its parity check, as the option bytes are delivered; ST's headers tell what is left
# with it (RM0444 2.3).
WITHOUT_PARITY = {"stm32g071xx": 0x9000, "stm32g0b1xx": 0x24000}
# The tightly coupled memories that the headers of the H7RS tell no size of, as the option bytes are
# delivered (RM0477 2.4, ST's linker scripts).
COUPLED = {"stm32h7s3xx": {0x00000000: 0x10000, 0x20000000: 0x10000}}
PIN_FUNCTION = re.compile(r"pinmux = <.*(?:AF|_REMAP)(\d+)\)>")
"""An alternate function, or on an F1 the number of the UART's pins in AFIO_MAPR."""
FLASH_END = re.compile(r"#define FLASH_END\s+\(?(0x\w+)UL")
FLASH_SIZE = re.compile(r"#define FLASH_SIZE(?:_DEFAULT\s+|\s.*\? |\s+)\(?(0x[0-9A-F]+)U")
"""What a part without a size in its system memory has. Some headers tell neither."""

# RAM that ST's headers name at another address than the board: that of the banks beside it.
ALIASES = {("stm32l4r5xx", 0x10000000): 0x20030000}  # SRAM2, RM0432 2.2.1 and 2.4

SECURE = {"stm32n657xx": 0x10000000}
"""Chips that run in the Secure state, with an image that is loaded into RAM: how far the addresses
of their memories are beyond the non-secure ones, of which the header tells the sizes."""


@dataclass(frozen=True)
class Repository:
    """Files of a checkout or a bare clone, at its newest commit."""

    path: Path
    name: str

    @property
    def commit(self) -> str:
        return self._git("rev-parse", "HEAD").decode().strip()

    def unpack(self, target: Path, *folders: str) -> None:
        """Write the files below `folders` to `target`."""
        with tarfile.open(fileobj=io.BytesIO(self._git("archive", "HEAD", *folders))) as archive:
            archive.extractall(target, filter="data")

    def files(self, folder: str) -> list[str]:
        return self._git("ls-tree", "-r", "--name-only", "HEAD", folder).decode().splitlines()

    def text(self, file: str) -> str:
        return self._git("show", f"HEAD:{file}").decode()

    def _git(self, *command: str) -> bytes:
        done = subprocess.run(
            ["git", "-C", str(self.path), *command], capture_output=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"{self.path}: {done.stderr.decode().strip()}")
        return done.stdout


def find_repository(headers: Path, name: str) -> Repository | None:
    """That of a folder whose name ends with `name`, itself or in the `repo` within."""
    for folder in sorted(headers.glob(f"*{name}")):
        for path in (folder / "repo", folder):
            if (path / ".git").exists() or (path / "HEAD").exists():
                return Repository(path, folder.name)
    return None


@dataclass(frozen=True)
class Headers:
    """One chip's header: its macros, and the values of C expressions that use it."""

    name: str
    includes: tuple[Path, ...]
    flags: tuple[str, ...]
    macros: Mapping[str, str]
    text: str

    def values(self, expressions: Sequence[str]) -> list[int | None]:
        """None where the header does not know what an expression names."""
        lines = [f'#include "{self.name}.h"', "#include <stddef.h>", *shared(self.text)]
        return evaluate(lines, expressions, self.flags, self.includes)


def shared(text: str) -> Iterator[str]:
    """A name of its own for the interrupt of a UART that shares it: USART2_LPUART2_IRQn."""
    for name in re.findall(r"^\s*(\w+)_IRQn\s*=", text, re.MULTILINE):
        for part in name.split("_") if "_" in name else ():
            if re.fullmatch(UARTS, part) and not re.search(rf"\b{part}_IRQn\b", text):
                yield f"#define {part}_IRQn {name}_IRQn"


def preprocess(lines: Iterable[str], flags: Sequence[str], includes: Iterable[Path]) -> str:
    gcc = compiler.find_tool("gcc")
    command = [gcc, *flags, *(f"-I{path}" for path in includes), "-E", "-dM", "-xc", "-"]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def macros_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"^#define (\w+) (.*)$", text, re.MULTILINE))


def evaluate(
    lines: Sequence[str],
    expressions: Sequence[str],
    flags: Sequence[str],
    includes: Iterable[Path],
) -> list[int | None]:
    """Values of constant C expressions after `lines`; None where the compiler refuses one."""
    gcc = compiler.find_tool("gcc")
    known: list[str | None] = list(expressions)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "values.c", Path(folder) / "values.o"
        command = [gcc, *flags, *(f"-I{path}" for path in includes), "-w", "-c", str(source)]
        for _ in range(2):
            body = [*lines, 'const unsigned values[] __attribute__((section(".values"))) = {']
            for number, expression in enumerate(known):
                body += [f'#line {number + 1} "entry"', f"(unsigned)({expression or 0}),"]
            source.write_text("\n".join([*body, "};"]) + "\n")
            done = subprocess.run(
                [*command, "-o", str(target)], capture_output=True, text=True, check=False
            )
            if done.returncode == 0:
                break
            refused = {int(n) for n in re.findall(r"^entry:(\d+):\d+: error", done.stderr, re.M)}
            if not refused:
                raise SystemExit(done.stderr)
            known = [None if i + 1 in refused else e for i, e in enumerate(known)]
        else:
            raise SystemExit(done.stderr)
        with target.open("rb") as file:
            data = ELFFile(file).get_section_by_name(".values").data()
    words = [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]
    return [None if e is None else w for e, w in zip(known, words, strict=True)]


def is_stm32(chip: Chip) -> bool:
    return chip.family.startswith("stm32")


def stm32_boards() -> list[Board]:
    return [b for b in boards().values() if is_stm32(b.chip)]


def header_name(chip: Chip) -> str:
    return chip.header or f"{chip.name}xx"


def headers_of(
    name: str, family: str, flags: Sequence[str], st: Repository, core: Repository, folder: Path
) -> Headers:
    """ST's header of that name, unpacked with what it includes into `folder`."""
    soc = f"stm32cube/{family}xx/soc"
    parts = {st.name: soc, core.name: "CMSIS/Core/Include"}
    for repository in (st, core):
        if not (folder / repository.name / parts[repository.name]).exists():
            (folder / repository.name).mkdir(exist_ok=True)
            repository.unpack(folder / repository.name, parts[repository.name])
    own = folder / st.name / soc
    if not (own / f"{name}.h").exists():
        raise SystemExit(f"{st.path} has no {soc}/{name}.h")
    includes = (own, folder / core.name / parts[core.name])
    if name in SECURE:
        flags = (*flags, "-mcmse")  # by which its peripherals have their Secure addresses
    if "-mcpu=cortex-m7" in flags:
        flags = (*flags, "-DCORE_CM7")  # which the headers of chips with two cores ask for
    text = (own / f"{name}.h").read_text(encoding="latin-1")
    listed = preprocess([f'#include "{name}.h"'], flags, includes)
    return Headers(name, includes, tuple(flags), macros_of(listed), text)


def tables_of(board: Board) -> list[str]:
    """Our tables of registers that the board's firmware includes."""
    assert board.counter is not None
    names = [*board.firmware_sources, board.counter.source]
    names += board.external.sources if board.external else []
    sources = [FIRMWARE / name for name in names]
    found = list(CORE_TABLES)
    for source in sources:
        found += re.findall(r'#include "(registers_\w+\.h)"', source.read_text())
    if board.core.name in ("cortex-m33", "cortex-m55"):
        found.remove("registers_armv7m.h")
    if board.core.name != "cortex-m7":
        found = [name for name in found if name != "registers_cortex_m7.h"]
    return sorted(set(found))


def ours(board: Board) -> dict[str, int]:
    """Each name of our tables and its number, for one board."""
    lines = [f'#include "{FIRMWARE / "include" / name}"' for name in tables_of(board)]
    options = BuildOptions(external=board.external is not None)
    flags = [*board.compiler_flags, *firmware_defines(board, options)]
    defined = macros_of(preprocess(lines, flags, ()))
    names = [
        name
        for table in tables_of(board)
        for name in re.findall(
            r"^#define (\w+) ", (FIRMWARE / "include" / table).read_text(), re.MULTILINE
        )
        if name in defined
    ]
    names = list(dict.fromkeys(names))
    values = evaluate(lines, names, flags, ())
    return {n: v for n, v in zip(names, values, strict=True) if v is not None}


def expression(name: str, macros: Mapping[str, str]) -> str:
    """What a name of our tables is in ST's terms: a macro, a register, or its offset."""
    if name in macros:
        return name
    peripheral, register = name.split("_", 1)
    if peripheral in macros:
        return f"&{peripheral}->{register}"
    return f"offsetof({peripheral}_TypeDef, {register})"


@dataclass(frozen=True)
class Fact:
    """A number of a board's file, and what it is in the terms of ST's header."""

    what: str
    ours: int
    theirs: str


def enable(name: str, macros: Mapping[str, str]) -> tuple[str, str]:
    """Register and bit that give a peripheral its clock: a port of F1's is IOPA there."""
    names = [name, name.replace("GPIO", "IOP")]
    found = [
        [m for m in macros if re.fullmatch(rf"RCC_(A[HP]B\d?[LH]?|IOP)ENR\d?_{n}EN", m)]
        for n in names
    ]
    bits = found[0] or found[1]
    if len(bits) != 1:
        return f"{name}'s clock enable", f"{name}'s clock enable"  # which no compiler takes
    register = bits[0].split("_")[1]
    return f"&RCC->{register}", bits[0]


def chip_tables(header: Headers, by_source: Sequence[str]) -> Iterator[str]:
    """[gpio] and [uarts] of a chip's file, as ST's header tells them."""
    ports = sorted(m[4] for m in header.macros if re.fullmatch(r"GPIO[A-K]", m))
    register, bit = enable("GPIOA", header.macros)
    base, step, at, mask = header.values(
        ["GPIOA", "(unsigned)GPIOB - (unsigned)GPIOA", register, bit]
    )
    assert base is not None and at is not None and mask is not None
    yield "[gpio]"
    yield f"base = {toml(base)}"
    yield f"enable = {toml(at)}"
    if mask != 1:
        yield f"enable_first_bit = {mask.bit_length() - 1}"
    if step != 0x400:
        yield f"step = 0x{step:X}"
    yield f'ports = "{"".join(ports)}"'
    yield ""
    yield "[uarts]"
    for name in sorted(m for m in header.macros if re.fullmatch(UARTS, m)):
        register, bit = enable(name, header.macros)
        base, irq, at, mask = header.values([name, f"{name}_IRQn", register, bit])
        if irq is None:  # a handler that several share has their names in one
            continue
        assert base is not None and at is not None
        bus = re.match(r"APB\d?", register.removeprefix("&RCC->"))
        assert bus is not None, register
        clock = "source" if name in by_source else bus[0].lower()
        more = ", brr_factor = 256" if name.startswith("LP") else ""
        yield (
            f"{name} = {{ base = {toml(base)}, irq = {irq}, enable = {toml(at)}, "
            f'enable_bits = 0x{mask:X}, clock = "{clock}"{more} }}'
        )


def toml(address: int) -> str:
    return f"0x{address >> 16:04X}_{address & 0xFFFF:04X}"


def pins_of(board: Board) -> list[tuple[str, int]]:
    assert board.uart is not None
    pins = [pin for pin in (board.uart.tx, board.uart.rx) if pin]
    return [(f"GPIO{pin[1]}", int(pin[2:])) for pin in pins]


def external_ports(board: Board) -> list[str]:
    """Those with pins of the memory beside the chip."""
    external = board.external
    return (
        [] if external is None else sorted({f"GPIO{pin[1]}" for pin, _ in external.pins.values()})
    )


def facts(board: Board, macros: Mapping[str, str]) -> Iterator[Fact]:
    assert board.uart is not None and board.counter is not None
    value = {n: int(t.rstrip("u"), 0) for n, t in board.defines.items() if "," not in t}

    def define(name: str, theirs: str) -> Fact:
        return Fact(name, value[f"THIMBLE_{name}"], theirs)

    uart = board.uart.name
    yield define("USART_BASE", uart)
    yield define("UART_IRQ", f"{uart}_IRQn")
    if board.emulator is not None:
        return
    if board.counter.register == DWT_CYCCNT:
        yield Fact("counter.register", board.counter.register, "&DWT->CYCCNT")
    if "THIMBLE_TIM3_ENABLE" in value:
        yield Fact("counter.register", board.counter.register, "&SysTick->VAL")
        register, bit = enable("TIM3", macros)
        yield define("TIM3_ENABLE", register)
        yield define("TIM3_ENABLE_BITS", bit)
    register, bit = enable(uart, macros)
    yield define("USART_ENABLE", register)
    yield define("USART_ENABLE_BITS", bit)
    ports = pins_of(board)
    for role, (port, pin) in zip(("TX", "RX"), ports, strict=True):
        yield define(f"{role}_PORT", port)
        yield define(f"{role}_PIN", str(pin))
    enables = [enable(port, macros) for port, _ in ports]
    yield define("GPIO_ENABLE", enables[0][0])
    yield define("GPIO_ENABLE_BITS", " | ".join(bit for _, bit in enables))
    if ports_beside := external_ports(board):
        bits = (enable(port, macros)[1] for port in ports_beside)
        yield define("EXTERNAL_GPIO_BITS", " | ".join(bits))
    if "THIMBLE_PWR_SUPPLY" in value:
        register = "CSR2" if "PWR_CSR2_LDOEN" in macros else "CR3"
        smps = board.name.endswith("-q")
        yield define("PWR_SUPPLY", f"PWR_{register}_{'SMPSEN' if smps else 'LDOEN'}")


def chip_facts(chip: Chip, macros: Mapping[str, str]) -> Iterator[Fact]:
    """What a chip's file says of its ports, UARTs, identity and switches."""
    identity = chip.identity
    if identity is not None:
        register = "DBG->IDCODE" if "DBG" in macros else "DBGMCU->IDCODE"
        yield Fact("identity.id_register", identity.id_register, f"&{register}")
        if identity.unique_id:
            yield Fact("identity.unique_id", identity.unique_id, "UID_BASE")
        for name, address in identity.registers.items():
            yield Fact(f"identity.registers.{name}", address, expression(name, macros))
        if "STM32H7_DEV_ID" in macros:
            yield Fact("identity.device_id", identity.device_id, "STM32H7_DEV_ID")
    for name, switch in chip.switches.items():
        peripheral, register, *_ = name.split("_")
        yield Fact(f"switches.{name}.register", switch.register, f"&{peripheral}->{register}")
        yield Fact(f"switches.{name}.bits", switch.bits, name)
    if chip.gpio is not None:
        register, bit = enable("GPIOA", macros)
        yield Fact("gpio.base", chip.gpio.base, "GPIOA")
        yield Fact("gpio.enable", chip.gpio.enable, register)
        for port in chip.gpio.ports:
            number = ord(port) - ord("A")
            yield Fact(f"gpio: {port}", chip.gpio.base + number * chip.gpio.step, f"GPIO{port}")
            own = 1 << number + chip.gpio.enable_first_bit
            yield Fact(f"gpio: {port}'s enable", own, enable(f"GPIO{port}", macros)[1])
    for name, uart in chip.uarts.items():
        if name not in macros:  # its family's, and not in every chip of it
            yield Fact(f"uarts.{name}", uart.base, name)
            continue
        register, bit = enable(name, macros)
        yield Fact(f"uarts.{name}.base", uart.base, name)
        yield Fact(f"uarts.{name}.irq", uart.irq, f"{name}_IRQn")
        yield Fact(f"uarts.{name}.enable", uart.enable, register)
        yield Fact(f"uarts.{name}.enable_bits", uart.enable_bits, bit)


def regions(header: Headers) -> list[tuple[int, int]]:
    """Start and end of each memory that ST's header tells, those that touch joined. Those of a
    Cortex-M0+ tell the size of RAM alone."""
    pattern = r"#define\s+(\w+?)_BASE(?:_NS)?\s+\(?(0x[0-9A-F]+)UL\)?\s*/\*!<(.*?)\*/"
    sizes = {
        n: int(v, 16) for n, v in re.findall(r"#define (\w+)_SIZE\w*\s+\(?(0x\w+)UL", header.text)
    }
    found = []
    for name, base, comment in re.findall(pattern, header.text):
        axi = re.fullmatch(r"(SRAM)\d_(A[XH][IB])", name)
        if axi:  # the H7RS's, whose sizes have names
            length = sizes.get(name) or sizes[f"{axi[1]}_{axi[2]}"]
            found.append((int(base, 16), int(base, 16) + length))
        size = re.search(r"(\d+)\s*KB", comment)
        told = size or re.search(r"SRAM\d(_AXI)?$", name)
        bytes_ = sizes.get(name, int(size[1]) * 1024 if size else 0) if told else 0
        if re.search(r"(?<!BKP)(SRAM\d?(_AXI)?|RAM|(RAM)?[ID]TCM)$", name) and bytes_:
            start = ALIASES.get((header.name, int(base, 16)), int(base, 16))
            start += SECURE.get(header.name, 0)
            found.append((start, start + bytes_))
    if not found and "SRAM_SIZE_MAX" in header.macros:
        most = re.search(r"#define SRAM_SIZE_MAX\s+\(?(0x\w+)UL", header.text)
        assert most is not None
        bytes_ = WITHOUT_PARITY.get(header.name, int(most[1], 16))
        found.append((0x20000000, 0x20000000 + bytes_))
    coupled = COUPLED.get(header.name, {}).items()
    found += [(start, start + length) for start, length in coupled]
    flash = FLASH_END.search(header.text)
    size = FLASH_SIZE.search(header.text)
    if flash is not None:
        found.append((0x08000000, int(flash[1], 16) + 1))
    elif size is not None:
        found.append((0x08000000, 0x08000000 + int(size[1], 16)))
    return joined(found)


def joined(parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What touches or overlaps, as one."""
    runs: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if runs and start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(end, runs[-1][1]))
        else:
            runs.append((start, end))
    return runs


def of_part(chip: Chip, start: int, end: int) -> tuple[int, int]:
    """A header of several parts tells the flash of the largest: that of a chip whose name has the
    letter of its flash, as stm32f103x8, ends where the letter says.
    """
    letters = chip.name.removeprefix(line_of(chip.name))
    if start != 0x08000000 or not letters.startswith("x"):
        return start, end
    return start, start + FLASH_KIB[letters[1]] * 1024


def memory_differences(chip: Chip, header: Headers) -> Iterator[str]:
    known = [of_part(chip, start, end) for start, end in regions(header)]
    memories = [bank.memory for bank in chip.banks]
    kinds_known = {start == 0x08000000 for start, _ in known}  # some headers tell one kind alone
    for start, end in joined((m.origin, m.end) for m in memories):
        if (start, end) not in known and (start == 0x08000000) in kinds_known:
            listed = ", ".join(f"0x{a:08X}-0x{b - 1:08X}" for a, b in known)
            yield f"memory 0x{start:08X}-0x{end - 1:08X}; {header.name}.h has {listed}"
    for memory in memories if header.name not in SECURE else ():
        if (memory.kind is MemoryKind.FLASH) != (memory.origin >> 24 == 0x08):
            yield f"memory {memory.name} at 0x{memory.origin:08X} is {memory.kind.value}"


def pin_differences(board: Board, st: Repository) -> Iterator[str]:
    """The alternate function of both pins, in every package of the chip."""
    if board.emulator is not None:
        return
    assert board.uart is not None
    line, family = line_of(board.chip.name), board.chip.family.removeprefix("stm32")
    uart = board.uart
    signals = [
        (f"{uart.name}_tx", uart.tx, uart.functions[0]),
        (f"{uart.name}_rx", uart.rx, uart.functions[1]),
    ]
    if board.external is not None:
        signals += [(name, *pin) for name, pin in board.external.pins.items()]
    for signal, pin, function in signals:
        node = f"{signal}_{pin}".lower()
        seen = set()
        for file in st.files(f"dts/st/{family}") or st.files(f"dts/st/{family[:2]}"):
            if Path(file).name.startswith(line):
                seen |= set(PIN_FUNCTION.findall("".join(nodes_of(node, st.text(file)))))
        if seen != {str(function)}:
            yield f"alternate function {function} of {node}; ST's pin data has {sorted(seen)}"


def nodes_of(node: str, text: str) -> list[str]:
    """The pin's entries; that of an F1 is called by where AFIO moves the UART, too."""
    remapped = node.replace("_p", r"(?:_remap\d)?_p")
    return re.findall(rf"(?<=: ){remapped} {{[^}}]*}}", text)


def identity_differences(chip: Chip, st: Repository) -> Iterator[str]:
    """The device identity that ST's LL driver tells in the notes on reading it."""
    identity = chip.identity
    if identity is None:
        return
    text = st.text(f"stm32cube/{chip.family}xx/drivers/include/{chip.family}xx_ll_system.h")
    notes = re.findall(r"@note For (.*) devices, the device ID is (0x\w+)", text)
    part = chip.name[5:].upper()
    series = [
        int(number, 16)
        for chips, number in notes
        if any(
            re.match(pattern.replace("x", "."), part)
            for group in re.findall(r"(?:STM32)([\w/]+)", chips)
            for pattern in spelt_out(group)
        )
    ]
    if series and identity.device_id not in series:
        told = [f"0x{number:03X}" for number in series]
        yield f"identity.device_id 0x{identity.device_id:03X}; ST's LL driver tells {told}"


def spelt_out(group: str) -> list[str]:
    """F405/407xx is F405xx and F407xx; only what tells the chip is kept."""
    first, *others = group.split("/")
    names = [first, *(first[0] + other if other[0].isdigit() else other for other in others)]
    return [re.sub(r"x+$", "", name) for name in names]


@dataclass(frozen=True)
class Row:
    """A register (no field) or a field: address, and the bits that ST's header gives a name."""

    register: str
    field: str
    address: int
    mask: int


def rows(board: Board, header: Headers, table: Mapping[str, int]) -> list[Row]:
    """All that the board's registers are, for the simulated ones of the tests."""
    assert board.uart is not None
    registers: dict[str, tuple[str, str]] = {}  # name: its address in C, what its fields begin with
    for name in table:
        peripheral, _, register = name.partition("_")
        if name in header.macros:
            continue
        if peripheral in header.macros:
            # The fields of OCTOSPI2's registers are those of any OCTOSPI.
            own = any(re.fullmatch(rf"{name}_\w+_Msk", macro) for macro in header.macros)
            fields = name if own else f"{peripheral.rstrip('0123456789')}_{register}"
            registers[name] = f"{peripheral}->{register}", fields
        elif peripheral == "GPIO":
            for port in dict.fromkeys([port for port, _ in pins_of(board)] + external_ports(board)):
                registers[f"{port}_{register}"] = f"{port}->{register}", name
        else:
            registers[f"{board.uart.name}_{register}"] = f"{board.uart.name}->{register}", name
    for name in {board.uart.name, *(port for port, _ in pins_of(board))}:
        if board.emulator is None:
            register = enable(name, header.macros)[0].split("->")[1]
            registers[f"RCC_{register}"] = f"RCC->{register}", f"RCC_{register}"
    names = sorted(registers)
    addresses = header.values([f"&{registers[name][0]}" for name in names])
    words = header.values([f"(sizeof({registers[name][0]}) + 3) / 4" for name in names])
    masks = {
        name: sorted(m for m in header.macros if re.fullmatch(rf"{registers[name][1]}_\w+_Msk", m))
        for name in names
    }
    flat = [mask for name in names for mask in masks[name]]
    value_of = dict(zip(flat, header.values(flat), strict=True))
    made: list[Row] = []
    for name, address, count in zip(names, addresses, words, strict=True):
        assert address is not None and count is not None
        fields = {m: value_of[m] or 0 for m in masks[name]}
        union = 0
        for bits in fields.values():
            union |= bits
        for index in range(count):
            label = name if count == 1 else f"{name}[{index}]"
            made.append(
                Row(label, "", address + 4 * index, union if fields and count == 1 else 0xFFFFFFFF)
            )
        prefix = registers[name][1]
        made += [
            Row(name, m.removeprefix(f"{prefix}_").removesuffix("_Msk"), address, bits)
            for m, bits in fields.items()
        ]
    return made


def write(board: Board, header: Headers, made: Iterable[Row], *repositories: Repository) -> None:
    TABLES.mkdir(exist_ok=True)
    known = " and ".join(f"{r.name.split('+')[-1]} at {r.commit}" for r in repositories)
    lines = [f"# {header.name}.h of {known}: addresses and bits", "register,field,address,mask"]
    lines += [f"{r.register},{r.field},{r.address:08X},{r.mask:08X}" for r in made]
    (TABLES / f"{board.name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_checked(repositories: Sequence[Repository]) -> None:
    """What was found without a difference, and with which revisions."""
    lines = ["# Written by scripts/check_registers.py --write.", f'date = "{datetime.now(UTC):%F}"']
    lines += ["", "[repositories]"]
    lines += [f'"{r.name.replace("+", "/")}" = "{r.commit}"' for r in repositories]
    lines += ["", "[chips]"]
    for chip in filter(is_stm32, chips().values()):
        header, numbers = f"{header_name(chip)}.h", numbers_of(chip)
        lines.append(f'{chip.name} = {{ header = "{header}", numbers = "{numbers}" }}')
    CHECKED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def hexadecimal(value: int | None) -> str:
    return "nothing of that name" if value is None else f"0x{value:X}"


def compared(named: Mapping[str, int], facts: Sequence[Fact], header: Headers) -> Iterator[str]:
    """Where our numbers are not those of ST's header."""
    theirs = header.values(
        [expression(name, header.macros) for name in named] + [fact.theirs for fact in facts]
    )
    own = [*named.items(), *((fact.what, fact.ours) for fact in facts)]
    for (name, ours), value in zip(own, theirs, strict=True):
        if ours != value:
            yield f"{name} is 0x{ours:X}; {header.name}.h has {hexadecimal(value)}"


def bus_differences(chip: Chip, macros: Mapping[str, str]) -> Iterator[str]:
    """UARTs on another bus than the one whose register gives them their clock for access."""
    others = {SOURCE, *(chip.clock.beside if chip.clock else ())}
    for name, uart in chip.uarts.items():
        bus = re.match(r"&RCC->(APB\d?)", enable(name, macros)[0]) if name in macros else None
        if bus is not None and uart.clock not in {bus[1].lower(), *others}:
            yield f"uarts.{name}.clock is {uart.clock}; its clock enable is one of {bus[1]}"


def chip_differences(chip: Chip, header: Headers, st: Repository) -> Iterator[str]:
    checked = list(chip_facts(chip, header.macros))
    yield from compared({}, checked, header)
    yield from bus_differences(chip, header.macros)
    yield from memory_differences(chip, header)
    yield from identity_differences(chip, st)
    print(f"{chip.name}: {len(checked)} numbers of its file, and its memories, {header.name}.h")


def differences(board: Board, header: Headers, st: Repository) -> Iterator[str]:
    table, checked = ours(board), list(facts(board, header.macros))
    yield from compared(table, checked, header)
    yield from pin_differences(board, st)
    print(f"{board.name}: {len(table)} names, {len(checked)} numbers of its file, {header.name}.h")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headers", type=Path, help="folder with ST's and Arm's repositories")
    parser.add_argument("--write", action="store_true", help="renew the tables of the tests")
    parser.add_argument("--tables", metavar="HEADER", help="print [gpio] and [uarts] of a chip")
    parser.add_argument("--flags", default="-mcpu=cortex-m4", help="of the chip of --tables")
    parser.add_argument("--source", action="append", default=[], help="UARTs on the oscillator")
    options = parser.parse_args(arguments)
    core = find_repository(options.headers, CORE_REPOSITORY)
    st = find_repository(options.headers, ST_REPOSITORY)
    if core is None or st is None:
        raise SystemExit(f"{options.headers} lacks {ST_REPOSITORY if core else CORE_REPOSITORY}")
    found: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.tables:
            family = family_of(options.tables, st)
            flags = options.flags.split()
            header = headers_of(options.tables, family, flags, st, core, folder)
            print("\n".join(chip_tables(header, options.source)))
            return 0

        def header_of(chip: Chip) -> Headers:
            name, flags = header_name(chip), chip.compiler_flags
            return headers_of(name, chip.family, flags, st, core, folder)

        for chip in filter(is_stm32, chips().values()):
            found += [f"{chip.name}: {d}" for d in chip_differences(chip, header_of(chip), st)]
        for board in stm32_boards():
            header = header_of(board.chip)
            found += [f"{board.name}: {d}" for d in differences(board, header, st)]
            if options.write and board.emulator is None:
                write(board, header, rows(board, header, ours(board)), st, core)
    if options.write and not found:
        write_checked((st, core))
    print("\n".join(found), file=sys.stderr)
    for repository in (st, core):
        print(f"{repository.name.split('+')[-1]}: {repository.commit}")
    print(f"{len(found)} differences")
    return 1 if found else 0


def family_of(header: str, st: Repository) -> str:
    """The family, as stm32h7rs, whose folder has that header. Raises SystemExit without one."""
    for file in st.files("stm32cube/"):
        if Path(file).name == f"{header}.h" and Path(file).parent.name == "soc":
            return Path(file).parts[1].removesuffix("xx")
    raise SystemExit(f"{st.path} has no {header}.h")


if __name__ == "__main__":
    sys.exit(main())

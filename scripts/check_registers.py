#!/usr/bin/env python3
"""Holds every register, bit, interrupt, memory and chip identity that the firmware and the STM32
boards use against ST's and Arm's own headers, and lists what differs.

    scripts/check_registers.py HEADERS [--write]

HEADERS is a folder with checkouts or bare clones of STMicroelectronics/cmsis_device_f4, _f7, _h7
and _l4 and of ARM-software/CMSIS_6; where zephyrproject-rtos/hal_stm32 is there too, the pins'
alternate functions are held against ST's pin data in it, and where stm32f4xx_hal_driver and its
like are, device identities that the headers lack. Needs arm-none-eabi-gcc. The exit code is 1
where anything differs. `--write` renews tests/support/firmware/registers/, the addresses and bits
that the simulated registers of the tests are made of.
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
from pathlib import Path

from elftools.elf.elffile import ELFFile

from toolchain.boards import Board, MemoryKind, boards
from toolchain.device import compiler
from toolchain.device.build import BuildOptions, firmware_defines
from toolchain.resources import RUNTIME_C

TABLES = Path(__file__).parent.parent / "tests" / "support" / "firmware" / "registers"
FIRMWARE = RUNTIME_C / "firmware"
INCLUDE = FIRMWARE / "include"
CORE_TABLES = ("registers_cortex_m.h", "registers_armv7m.h")
CORE_REPOSITORY = "CMSIS_6"
PIN_REPOSITORY = "hal_stm32"
FAMILIES = ("f4", "f7", "h7", "l4")

# RAM that ST's headers name at another address than the board: that of the banks beside it.
ALIASES = {("stm32l4r5xx", 0x10000000): 0x20030000}  # SRAM2, RM0432 2.2.1 and 2.4


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
        lines = [f'#include "{self.name}.h"', "#include <stddef.h>"]
        return evaluate(lines, expressions, self.flags, self.includes)


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


def family(board: Board) -> str:
    return board.chip.name[5:7]


def stm32_boards() -> list[Board]:
    return [b for b in boards().values() if b.chip.name.startswith("stm32")]


def headers_of(board: Board, device: Repository, core: Repository, folder: Path) -> Headers:
    """Unpacks what the board's chip needs into `folder`."""
    parts = {device.name: ("Include",), core.name: ("CMSIS/Core/Include",)}
    for repository in (device, core):
        if not (folder / repository.name).exists():
            (folder / repository.name).mkdir()
            repository.unpack(folder / repository.name, *parts[repository.name])
    own = folder / device.name / "Include"
    found = sorted(own.glob(f"{board.chip.name}*.h"))
    if board.name.endswith("-q"):
        found = [file for file in found if file.stem.endswith("q")]
    if not found:
        raise SystemExit(f"{device.path} has no header for {board.chip.name}")
    includes = (own, folder / core.name / "CMSIS/Core/Include")
    name = found[0].stem
    flags = board.compiler_flags
    listed = preprocess([f'#include "{name}.h"'], flags, includes)
    return Headers(name, includes, flags, macros_of(listed), found[0].read_text(encoding="latin-1"))


def tables_of(board: Board) -> list[str]:
    """Our tables of registers that the board's firmware includes."""
    assert board.counter is not None
    sources = [FIRMWARE / name for name in (*board.firmware_sources, board.counter.source)]
    found = list(CORE_TABLES)
    for source in sources:
        found += re.findall(r'#include "(registers_\w+\.h)"', source.read_text())
    if board.core.name != "cortex-m7":
        found = [name for name in found if name != "registers_cortex_m7.h"]
    return sorted(set(found))


def ours(board: Board) -> dict[str, int]:
    """Each name of our tables and its number, for one board."""
    lines = [f'#include "{FIRMWARE / "include" / name}"' for name in tables_of(board)]
    flags = [*board.compiler_flags, *firmware_defines(board, BuildOptions())]
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
    """Register and bit that give a peripheral its clock."""
    bits = [m for m in macros if re.fullmatch(rf"RCC_A[HP]B\d?[LH]?ENR\d?_{name}EN", m)]
    if len(bits) != 1:
        raise SystemExit(f"ST's header has {len(bits)} clock enable bits of {name}: {bits}")
    register = bits[0].split("_")[1]
    return f"&RCC->{register}", bits[0]


def pins_of(board: Board) -> list[tuple[str, int]]:
    assert board.uart is not None
    return [(f"GPIO{p}", int(n)) for p, n in re.findall(r"P([A-K])(\d+)", board.uart.pins)]


def facts(board: Board, macros: Mapping[str, str]) -> Iterator[Fact]:
    assert board.uart is not None and board.counter is not None
    value = {name: int(text.rstrip("u"), 0) for name, text in board.defines.items()}

    def define(name: str, theirs: str) -> Fact:
        return Fact(name, value[f"THIMBLE_{name}"], theirs)

    uart = board.uart.name
    yield define("USART_BASE", uart)
    yield define("UART_IRQ", f"{uart}_IRQn")
    identity = board.chip.identity
    if board.emulator is not None or identity is None:
        return
    yield Fact("counter.register", board.counter.register, "&DWT->CYCCNT")
    yield Fact("identity.id_register", identity.id_register, "&DBGMCU->IDCODE")
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
    if "THIMBLE_PWR_SUPPLY" in value:
        smps = board.name.endswith("-q")
        yield define("PWR_SUPPLY", "PWR_CR3_SMPSEN" if smps else "PWR_CR3_LDOEN")
    if "STM32H7_DEV_ID" in macros:
        yield Fact("identity.device_id", identity.device_id, "STM32H7_DEV_ID")


def regions(header: Headers) -> list[tuple[int, int]]:
    """Start and end of each memory that ST's header tells, those that touch joined."""
    pattern = r"#define\s+(\w+)_BASE\s+\(?(0x[0-9A-F]+)UL\)?\s*/\*!<(.*?)\*/"
    sizes = {
        n: int(v, 16) for n, v in re.findall(r"#define (\w+)_SIZE\w*\s+\(?(0x\w+)UL", header.text)
    }
    found = []
    for name, base, comment in re.findall(pattern, header.text):
        size = re.search(r"(\d+)\s*KB", comment)
        if re.search(r"(?<!BKP)(SRAM\d?|RAM|RAMITCM|RAMDTCM)$", name) and size:
            start = ALIASES.get((header.name, int(base, 16)), int(base, 16))
            found.append((start, start + sizes.get(name, int(size[1]) * 1024)))
    end = re.search(r"#define FLASH_END\s+\(?(0x\w+)UL", header.text)
    assert end is not None
    return joined([*found, (0x08000000, int(end[1], 16) + 1)])


def joined(parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
    return runs


def memory_differences(board: Board, header: Headers) -> Iterator[str]:
    known = regions(header)
    for start, end in joined((m.origin, m.end) for m in board.memories):
        if (start, end) not in known:
            listed = ", ".join(f"0x{a:08X}-0x{b - 1:08X}" for a, b in known)
            yield f"memory 0x{start:08X}-0x{end - 1:08X}; {header.name}.h has {listed}"
    for memory in board.memories:
        if (memory.kind is MemoryKind.FLASH) != (memory.origin == 0x08000000):
            yield f"memory {memory.name} at 0x{memory.origin:08X} is {memory.kind.value}"


def pin_differences(board: Board, pins: Repository | None) -> Iterator[str]:
    """The alternate function of both pins, in every package of the chip."""
    if pins is None or board.emulator is not None:
        return
    assert board.uart is not None
    function = int(board.defines["THIMBLE_UART_FUNCTION"].rstrip("u"), 0)
    for role, (port, pin) in zip(("tx", "rx"), pins_of(board), strict=True):
        node = f"{board.uart.name}_{role}_p{port[-1]}{pin}".lower()
        seen = set()
        for file in pins.files(f"dts/st/{family(board)}"):
            if Path(file).name.startswith(board.chip.name):
                seen |= set(
                    re.findall(rf"{node}: {node} {{\s*pinmux = <.*AF(\d+)\)>", pins.text(file))
                )
        if seen != {str(function)}:
            yield f"alternate function {function} of {node}; ST's pin data has {sorted(seen)}"


def identity_differences(board: Board, hal: Repository | None) -> Iterator[str]:
    """The device identity that ST's LL driver tells in the notes on reading it."""
    identity = board.chip.identity
    if hal is None or board.emulator is not None or identity is None:
        return
    text = hal.text(f"Inc/stm32{family(board)}xx_ll_system.h")
    notes = re.findall(r"@note For (.*) devices, the device ID is (0x\w+)", text)
    part = board.chip.name[5:].upper()
    series = [
        int(number, 16)
        for chips, number in notes
        if any(
            re.match(pattern.replace("x", "."), part)
            for group in re.findall(r"(?:STM32)([\w/]+)", chips)
            for pattern in spelt_out(group)
        )
    ]
    if notes and series != [identity.device_id]:
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
            registers[name] = f"{peripheral}->{register}", name
        elif peripheral == "GPIO":
            for port in dict.fromkeys(port for port, _ in pins_of(board)):
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


def hexadecimal(value: int | None) -> str:
    return "nothing of that name" if value is None else f"0x{value:X}"


def differences(
    board: Board, header: Headers, pins: Repository | None, hal: Repository | None
) -> Iterator[str]:
    table = ours(board)
    checked = list(facts(board, header.macros))
    theirs = header.values(
        [expression(name, header.macros) for name in table] + [fact.theirs for fact in checked]
    )
    for name, own, value in zip(
        [*table, *(fact.what for fact in checked)],
        [*table.values(), *(fact.ours for fact in checked)],
        theirs,
        strict=True,
    ):
        if own != value:
            yield f"{name} is 0x{own:X}; {header.name}.h has {hexadecimal(value)}"
    if board.emulator is None:
        yield from memory_differences(board, header)
    yield from pin_differences(board, pins)
    yield from identity_differences(board, hal)
    print(f"{board.name}: {len(table)} names, {len(checked)} numbers of its file, {header.name}.h")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("headers", type=Path, help="folder with ST's and Arm's repositories")
    parser.add_argument("--write", action="store_true", help="renew the tables of the tests")
    options = parser.parse_args(arguments)
    core = find_repository(options.headers, CORE_REPOSITORY)
    pins = find_repository(options.headers, PIN_REPOSITORY)
    found = 0
    with tempfile.TemporaryDirectory() as name:
        for board in stm32_boards():
            device = find_repository(options.headers, f"cmsis_device_{family(board)}")
            if device is None or core is None:
                missing = CORE_REPOSITORY if core is None else f"cmsis_device_{family(board)}"
                raise SystemExit(f"{options.headers} has no {missing}")
            header = headers_of(board, device, core, Path(name))
            hal = find_repository(options.headers, f"stm32{family(board)}xx_hal_driver")
            for difference in differences(board, header, pins, hal):
                print(f"{board.name}: {difference}", file=sys.stderr)
                found += 1
            if options.write and board.emulator is None:
                write(board, header, rows(board, header, ours(board)), device, core)
        used = [
            core,
            pins,
            *(find_repository(options.headers, f"cmsis_device_{f}") for f in FAMILIES),
        ]
    for repository in filter(None, used):
        print(f"{repository.name.split('+')[-1]}: {repository.commit}")
    print(f"{found} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

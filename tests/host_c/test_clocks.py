"""The start-up of the STM32 boards on simulated registers: clocks, wait states, pins, baud rate.

No such board is here. What can be checked is that the values written mean the clock that the
board's file promises, by the reference manuals' formulas and within their limits, in a safe order,
and that they go to the registers and bits that ST's headers tell (tests/support/registers.py): the
simulated chip has no others.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import external
from tests.support.families import families
from tests.support.families.family import MHZ, Follows, Started
from tests.support.registers import Registers, registers
from toolchain.boards import GUARD_BYTES, Board, board, boards
from toolchain.device.build import BuildOptions, firmware_defines
from toolchain.resources import RUNTIME_C

FOLDER = Path(external.__file__).parent / "firmware"
FORGET = "# forget the fault record"
SHORT = ("-DTHIMBLE_WAIT_TURNS=50u",)
STOPPED = 6
START_WAITS = 0x57A27002
SILENT, UNKNOWN = -40, -41
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

REAL = {b.name: b for b in boards().values() if b.flash_runners}
SILICON = sorted(REAL)
M0PLUS = "cortex-m0plus"
M55 = "cortex-m55"
CACHED = ("cortex-m7", M55)
CACHE_FIRST = {"SCB_CCSIDR": 0xF00FE019}  # 16 KB: 128 sets, four ways of 32 bytes


def programs(shared_folder: Path) -> Path:
    """Where each board's program is kept, made once."""
    folder = shared_folder / "start"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def folder(shared_folder: Path) -> Path:
    return programs(shared_folder)


def program_of(target: Board, folder: Path, defines: Sequence[str]) -> Path:
    program = folder / "-".join((target.name, *defines))
    if program.exists():
        return program
    assert target.counter is not None
    firmware = RUNTIME_C / "firmware"
    sources = ["core.c", *target.firmware_sources, target.counter.source]
    options = BuildOptions(external=target.external is not None)
    if target.external is not None:
        sources += target.external.sources
    flags = ["-std=gnu99", "-w", "-include", str(FOLDER / "registers.h")]
    if target.core.name == M0PLUS:
        flags.append("-D__ARM_ARCH_6M__=1")
    if target.core.name == "cortex-m3":
        flags.append("-D__ARM_ARCH_7M__=1")
    if target.core.name == "cortex-m33":
        flags.append("-D__ARM_ARCH_8M_MAIN__=1")
    if target.core.name == M55:
        flags.append("-D__ARM_ARCH_8_1M_MAIN__=1")
    includes = [f"-I{firmware / 'include'}"]
    command = ["gcc", *flags, *includes, *firmware_defines(target, options), *defines]
    command += [str(firmware / name) for name in sources]
    made = program.with_name(f"{program.name}-{os.getpid()}")
    subprocess.run([*command, str(FOLDER / "registers.c"), "-o", str(made)], check=True)
    return made.rename(program)


def run(
    target: Board,
    folder: Path,
    first: Mapping[str, int] | None = None,
    defines: Sequence[str] = (),
    chip: Registers | None = None,
    *,
    follows: Follows | None = None,
    flags: Sequence[str] | None = None,
) -> subprocess.CompletedProcess[str]:
    chip = chip or registers(target.name)
    program = program_of(target, folder, defines)
    family = families()[target.chip.family]
    made = family.follows(target) if follows is None else follows
    rules = [chip.rule(cause, flag) for cause, flag in made]
    if follows is None:
        rules += chip.switch_rules(*family.switch)
    beside = external.FLAGS.get(target.name, ()) if flags is None else flags
    rules += [chip.rule("", flag) for flag in beside]
    values = [f"{chip.addresses[name]:x}={value:x}" for name, value in (first or {}).items()]
    table = "".join(f"{at:x} {chip.bits[name]:x}\n" for name, at in chip.addresses.items())
    return subprocess.run(
        [str(program), *rules, *values], input=table, capture_output=True, text=True, check=False
    )


def start(target: Board, folder: Path, first: Mapping[str, int] | None = None) -> Started:
    chip = registers(target.name)
    begin = {**families()[target.chip.family].first(target), **(first or {})}
    if "THIMBLE_NO_MPU" not in target.defines:
        begin["MPU_TYPE"] = 0x800
    if target.external is not None:
        register, identity = external.IDENTITIES[target.name]
        begin.setdefault(register, identity)
    if target.core.name in CACHED:
        begin |= CACHE_FIRST
    done = run(target, folder, begin)
    assert done.returncode == 0, done.stderr
    known = {chip.addresses[name]: value for name, value in begin.items()}
    return Started(chip, tuple(done.stdout.splitlines()), known)


def number(target: Board, name: str, otherwise: int = 0) -> int:
    text = target.defines.get(f"THIMBLE_{name}")
    return otherwise if text is None else int(text.rstrip("u"), 0)


def check_common(started: Started, target: Board) -> None:
    """Wait states stand before the switch to the PLL; core, pins and baud rate are right."""
    chip = started.chip
    family = families()[target.chip.family]
    cfgr, switch = chip.fields[family.switch[0]]
    if family.quickened is None:
        switched = started.when(lambda at, value: at == cfgr and value & switch >= 2)
    else:
        switched = family.quickened(started)
    if family.prescaler:
        assert started.values("FLASH_ACR")
        last_wait = max(
            i for i, (at, _) in enumerate(started.writes) if at == chip.addresses["FLASH_ACR"]
        )
        assert last_wait < switched
        check_flash(started, target)

    assert target.uart is not None
    pins = (target.uart.tx, target.uart.rx)
    for name, wanted in zip(pins, target.uart.functions, strict=True):
        port, pin = f"GPIO{name[1]}", int(name[2:])
        if f"{port}_CRL" in chip.addresses:  # an F1: its family looks at AFIO
            check_pin_v1(started, port, pin, output=name == target.uart.tx)
        else:
            check_pin(started, port, pin, wanted)
        enables = [f for f in chip.fields if re.search(rf"ENR\d?_({port}|IOP{port[-1]})EN$", f)]
        assert len(enables) == 1 and started.field(enables[0])
    enables = [f for f in chip.fields if re.search(rf"ENR\d?_{target.uart.name}EN$", f)]
    assert len(enables) == 1 and started.field(enables[0])
    clock = number(target, "USART_CLOCK_HZ") * number(target, "USART_BRR_FACTOR", 1)
    divider = started.register(f"{target.uart.name}_BRR")
    assert abs(clock / divider / target.uart.baud - 1) < 0.005
    if target.uart.name == "LPUART1":  # LPUART_BRR_MIN and _MAX, stm32l4xx_hal_uart.c
        assert 0x300 <= divider <= 0xFFFFF
    irq = number(target, "UART_IRQ")
    enabled = words_of(chip, "NVIC_ISER")
    assert started.register(enabled[irq // 32]) == 1 << irq % 32
    if target.core.name in ("cortex-m33", M55):  # MSPLIM guards the stack
        assert started.register("MPU_CTRL") == 0
    elif "THIMBLE_NO_MPU" not in target.defines:
        assert started.field("MPU_CTRL_ENABLE") and started.field("MPU_CTRL_PRIVDEFENA")
    if target.core.name == M0PLUS:
        check_systick(started)
        return
    assert started.field("DCB_DEMCR_TRCENA") and started.field("DWT_CTRL_CYCCNTENA")
    if family.debugged_asleep:
        sleeps = [f for f in chip.fields if f.startswith(family.debugged_asleep)]
        assert any(started.field(name) for name in sleeps)
    if target.core.name == "cortex-m7":
        assert started.values("DWT_LAR") == [0xC5ACCE55]
        check_m7(started)
    elif target.core.name in CACHED:
        check_caches(started)


def check_pin(started: Started, port: str, pin: int, function: int) -> None:
    """It has the function, and a pull-up."""
    assert started.register(f"{port}_MODER") >> 2 * pin & 3 == 2
    assert started.register(f"{port}_PUPDR") >> 2 * pin & 3 == 1
    assert started.register(f"{port}_AFR[{pin // 8}]") >> 4 * (pin % 8) & 15 == function


def check_pin_v1(started: Started, port: str, pin: int, output: bool) -> None:
    """MODE and CNF of RM0008 9.1: an output of a peripheral, push-pull, or an input with a pull-up
    (BSRR)."""
    halves = started.register(f"{port}_CRH") << 32 | started.register(f"{port}_CRL")
    mode, function = halves >> 4 * pin & 3, halves >> 4 * pin + 2 & 3
    assert function == 2 and (mode > 0) == output
    if not output:
        assert started.values(f"{port}_BSRR") == [1 << pin]


def words_of(chip: Registers, name: str) -> list[str]:
    """The registers of an array, which is one register in Armv6-M's NVIC."""
    return [n for n in chip.addresses if n == name or n.startswith(f"{name}[")]


def check_systick(started: Started) -> None:
    """It counts the core's clock over all its bits, and TIM3 each 65536th."""
    assert started.register("SysTick_CTRL") == 5 and started.register("SysTick_LOAD") == 0xFFFFFF
    assert started.register("TIM3_CR1") == 1 and started.register("TIM3_PSC") == 0xFFFF
    assert started.register("TIM3_ARR") == 0xFFFF
    assert any(started.field(f) for f in started.chip.fields if f.endswith("_TIM3EN"))


def check_flash(started: Started, target: Board) -> None:
    """What the chip's file tells the time model: wait states, the clock of the flash's bus,
    prefetch and the small caches."""
    flash, chip = target.chip.banks[0], started.chip
    assert flash.timing is not None
    waits = flash.timing.wait_states(target.clock_hz, target.name)
    if target.core.name != "cortex-m3" or waits:
        assert flash.caches and started.field("FLASH_ACR_LATENCY") == waits
    pattern = families()[target.chip.family].prescaler
    (prescaler,) = [f for f in chip.fields if re.fullmatch(pattern, f)]
    assert {0: 1, 8: 2}[started.field(prescaler)] == flash.timing.divider
    if target.core.name == M0PLUS:
        assert started.field("FLASH_ACR_PRFTEN") == flash.timing.prefetch == 1
        buffers = "FLASH_ACR_ICEN" if "FLASH_ACR_ICEN" in chip.fields else "FLASH_ACR_DISAB_BUF"
        assert started.field(buffers) == buffers.endswith("ICEN")
    elif target.chip.family in ("stm32f1", "stm32f3"):
        on = "FLASH_ACR_PRFTBE" in chip.fields and started.field("FLASH_ACR_PRFTBE")
        assert on == flash.timing.prefetch
    elif target.core.name in ("cortex-m3", "cortex-m4"):
        assert started.field("FLASH_ACR_PRFTEN") == flash.timing.prefetch == 1
        if target.chip.family != "stm32l1":  # which has no ART
            assert started.field("FLASH_ACR_ICEN") and started.field("FLASH_ACR_DCEN")
    elif target.core.name == "cortex-m33":
        prefetch = "FLASH_ACR_PRFTEN" in chip.fields and started.field("FLASH_ACR_PRFTEN")
        assert prefetch == flash.timing.prefetch
        emptied, on = started.when_set("ICACHE_CR_CACHEINV"), started.when_set("ICACHE_CR_EN")
        assert flash.caches == ("icache",) and emptied < on
    else:  # the flash is read past ART and its prefetch; check_m7 looks at L1
        assert flash.memory.origin == 0x0800_0000 and not flash.timing.prefetch


def check_caches(started: Started) -> None:
    """Both, emptied and at last written back."""
    assert started.field("SCB_CCR_IC") and started.field("SCB_CCR_DC")
    lines = {way << 30 | set_ << 5 for way in range(4) for set_ in range(128)}
    assert {0, *started.values("SCB_DCISW")} == {0, *started.values("SCB_DCCSW")} == lines


def check_m7(started: Started) -> None:
    """From before its caches are on, no speculation from 0x60000000 to 0xDFFFFFFF."""
    check_caches(started)
    rasr = started.chip.addresses["MPU_RASR"]
    refused = started.when(lambda at, value: at == rasr and value >> 1 & 31 == 31 and value & 1)
    value = started.writes[refused][1]
    off = [eighth for eighth in range(8) if value >> 8 & 1 << eighth]
    assert off == [0, 1, 2, 7]  # eighths of 512 MB that stay as they are
    assert value >> 24 & 7 == 0 and value >> 28 & 1 and value >> 16 & 0x3F == 0
    assert refused < started.when_set("SCB_CCR_DC")


def test_every_family_is_described() -> None:
    assert {b.chip.family for b in REAL.values()} == set(families())


@pytest.mark.parametrize("name", SILICON)
def test_the_clocks_are_those_of_the_board_file(name: str, folder: Path) -> None:
    """What the written values mean by the manual's formulas is what followed from the factors."""
    target = board(name)
    started = start(target, folder)
    check_common(started, target)
    found = dict(families()[target.chip.family].clocks(started, target))
    assert found.pop("usart") == number(target, "USART_CLOCK_HZ")
    assert found == target.clocks_hz and found["core"] == target.clock_hz
    assert started.clock_hz == pytest.approx(target.clock_hz, rel=1e-6)


def test_an_l0_that_sleeps_can_be_reached(folder: Path) -> None:
    """It sleeps between requests, and DBG_SLEEP needs the clock of DBGMCU (stm32l073xx.h:1513 and
    :4481 in hal_stm32 at fe7d2e2b)."""
    target = board("nucleo-l073rz")
    assert "THIMBLE_NEVER_SLEEPS" not in target.defines
    started = start(target, folder)
    assert started.when_set("RCC_APB2ENR_DBGEN") < started.when_set("DBGMCU_CR_DBG_SLEEP")


@pytest.mark.parametrize(
    ("name", "enable"),
    [
        ("nucleo-g071rb", "RCC_APBENR1_DBGEN"),
        ("nucleo-c031c6", "RCC_APBENR1_DBGEN"),
        ("nucleo-n657x0-q", "RCC_MISCENR_DBGEN"),
    ],
)
def test_the_identity_that_hello_tells_has_its_clock(name: str, enable: str, folder: Path) -> None:
    assert start(board(name), folder).field(enable) == 1


def test_an_n657_is_all_secure_before_its_clock_rises(folder: Path) -> None:
    """ST's SystemInit clears eight regions first (system_stm32n6xx_fsbl.c, "Clear SAU regions")."""
    left = {"SAU_RNR": 7, "SAU_RBAR": 0x3000_0000, "SAU_RLAR": 0x3FFF_FFE1}
    started = start(board("nucleo-n657x0-q"), folder, left)
    assert started.values("SAU_RNR") == list(range(8))
    assert started.register("SAU_RBAR") == started.register("SAU_RLAR") == 0
    last = max(
        i for i, (at, _) in enumerate(started.writes) if at == started.chip.addresses["SAU_RNR"]
    )
    assert last < started.when_set("RCC_CSR_PLL1ONS")


def test_the_wide_vco_gets_more_than_its_least(folder: Path) -> None:
    """2 MHz is the least that it takes (RM0477 8.7), and the oscillator may be 1 % below."""
    started = start(board("nucleo-h7s3l8"), folder)
    assert 64 * MHZ / started.field("RCC_PLLCKSELR_DIVM1") > 2.02 * MHZ
    assert started.clock_hz == pytest.approx(600 * MHZ, rel=1e-6)


@pytest.mark.parametrize(("device_id", "prefetch"), [(0x413, 1), (0x411, 0)])
def test_f407_of_revision_a_has_no_prefetch(device_id: int, prefetch: int, folder: Path) -> None:
    """ST ES0182: it says that it is an F2."""
    identity = 0x2000 << 16 | device_id
    started = start(board("f4-discovery"), folder, {"DBGMCU_IDCODE": identity})
    assert started.field("FLASH_ACR_PRFTEN") == prefetch
    assert started.field("FLASH_ACR_ICEN") and started.field("FLASH_ACR_DCEN")


def test_a_uart_of_an_f1_is_moved_by_afio(folder: Path) -> None:
    """The field of the UART alone changes, and the debug port stays on: what SWJ_CFG was cannot be
    read."""
    target = board("bluepill-f103c8")
    values = {**families()["stm32f1"].first(target), "AFIO_MAPR": 0x04000050}
    moved = ["-UTHIMBLE_TX_FUNCTION", "-DTHIMBLE_TX_FUNCTION=1u"]
    chip = registers(target.name)
    done = run(target, folder, values, moved)
    assert done.returncode == 0, done.stderr
    started = Started(chip, tuple(done.stdout.splitlines()), {})
    assert started.register("AFIO_MAPR") == 0x54
    assert chip.fields["AFIO_MAPR_USART1_REMAP"][1] == 4


@pytest.mark.parametrize("name", ["f746g-disco", "nucleo-f767zi"])
def test_f7_after_the_boot_loader(name: str, folder: Path) -> None:
    """The loader leaves HSE, PLL and SysTick on, an interrupt, and other clocks to the USARTs."""
    left = {
        "RCC_CR": 0x03010001,
        "RCC_CFGR": 0x0000000A,
        "RCC_DCKCFGR2": 0x0000003F,
        "SysTick_CTRL": 7,
        "SCB_CCR": 0x200,
    }
    target = board(name)
    assert target.uart is not None
    started = start(target, folder, left)
    check_common(started, target)
    assert started.field(f"RCC_DCKCFGR2_{target.uart.name}SEL") == 0
    assert not started.field("RCC_CR_HSEON") and started.register("SysTick_CTRL") == 0
    control, (_, on) = started.chip.addresses["RCC_CR"], started.chip.fields["RCC_CR_PLLON"]
    stopped = started.when(lambda at, value: at == control and not value & on)
    switched = started.when(lambda at, value: at == started.chip.addresses["RCC_CFGR"])
    assert switched < stopped < started.when_set("RCC_CR_PLLON")


@pytest.mark.parametrize("name", SILICON)
@pytest.mark.parametrize("left", [0, 0x7F])
def test_the_oscillator_is_as_it_was_calibrated(name: str, left: int, folder: Path) -> None:
    """RCC_HSICALIBRATION_DEFAULT of ST's HAL. Everything runs on it."""
    signed = board(name).chip.family == "stm32n6"
    chip = registers(name)
    (field,) = [f for f in chip.fields if f.endswith("_HSITRIM")]
    at, mask = chip.fields[field]
    register = next(n for n, address in chip.addresses.items() if address == at)
    step = mask & -mask
    first = {register: left * step & mask}
    if name == "nucleo-h743zi":
        first["DBGMCU_IDCODE"] = 0x20030450
        older = start(board(name), folder, first | {"DBGMCU_IDCODE": 0x10030450})
        assert not older.values(register)  # CSITRIM is there
    middle = 0 if signed else (mask // step + 1) // 2
    assert start(board(name), folder, first).field(field) == middle


def test_a_data_cache_that_is_on_is_not_thrown_away(folder: Path) -> None:
    """It holds the stack of who started the firmware, and the firmware's own."""
    target = board("nucleo-h743zi")
    _, on = registers(target.name).fields["SCB_CCR_DC"]
    started = start(target, folder, {"SCB_CCR": on})
    assert started.field("SCB_CCR_IC") and started.field("SCB_CCR_DC")
    assert not started.values("SCB_DCISW") and started.values("SCB_DCCSW")


@pytest.mark.parametrize("name", SILICON)
def test_nothing_that_ran_before_is_left(name: str, folder: Path) -> None:
    """SysTick, interrupts, MPU, the UART's other registers: as a reset leaves them, or as set."""
    target = board(name)
    assert target.uart is not None
    uart = target.uart.name
    dirty = {
        "SysTick_CTRL": 7,
        "SCB_SCR": 6,
        f"{uart}_CR1": 0xC,
        f"{uart}_CR2": 0x3000,
        f"{uart}_CR3": 0xC0,
    }
    protected = "THIMBLE_NO_MPU" not in target.defines
    if protected:
        dirty["MPU_CTRL"] = 5
    if "THIMBLE_USART_FIFO" in target.defines:
        dirty[f"{uart}_PRESC"] = 3
    started = start(target, folder, dirty)
    check_common(started, target)
    set_anew = {"MPU_CTRL", f"{uart}_CR1"}
    if target.core.name == M0PLUS:
        assert started.values("SysTick_CTRL")[0] == 0
        set_anew.add("SysTick_CTRL")
    assert not any(started.register(name) for name in dirty if name not in set_anew)
    for name in ("NVIC_ICER", "NVIC_ICPR"):
        words = words_of(started.chip, name)
        used = 1 if target.core.name == M0PLUS else 8  # 256 interrupts; an M33's header has 480
        assert len(words) >= used
        assert [started.register(word) for word in words[:used]] == [0xFFFFFFFF] * used
    if not protected:
        return
    assert started.values("MPU_CTRL")[0] == 0
    guard = [] if target.core.name in ("cortex-m33", M55) else [0x20000000 - GUARD_BYTES]
    assert started.values("MPU_RBAR")[:1] == guard


@pytest.mark.parametrize(("revision", "core_mhz"), [(0x2003, 480), (0x2001, 400), (0x1003, 400)])
def test_older_h743s_are_slower(revision: int, core_mhz: int, folder: Path) -> None:
    """There is no scale 0 before revision V; before X, one read of the AXI SRAM at a time."""
    target = board("nucleo-h743zi")
    started = start(target, folder, {"DBGMCU_IDCODE": revision << 16 | 0x450})
    found = families()["stm32h7"].clocks(started, target)
    assert found["core"] == core_mhz * MHZ and found["axi"] == core_mhz * MHZ / 2
    assert started.clock_hz == core_mhz * MHZ
    assert started.field("SYSCFG_PWRCR_ODEN") == (core_mhz == 480)
    assert started.register("GPV_AXI_TARG7_FN_MOD") == (revision < 0x2000)


@pytest.mark.parametrize(("boost", "core_mhz"), [(1, 550), (0, 520)])
def test_an_h723_is_as_fast_as_its_option_byte_allows(
    boost: int, core_mhz: int, folder: Path
) -> None:
    """CPUFREQ_BOOST, 0 as it is delivered, takes the ECC of the tightly coupled memories."""
    target = board("nucleo-h723zg")
    started = start(target, folder, {"SYSCFG_UR18": boost})
    found = families()["stm32h7"].clocks(started, target)
    assert found["core"] == core_mhz * MHZ == started.clock_hz


@pytest.mark.parametrize(
    "name",
    ["nucleo-h723zg", "nucleo-h743zi", "nucleo-h755zi-q", "nucleo-h7a3zi-q", "nucleo-h7s3l8"],
)
@pytest.mark.parametrize("power_on", [True, False])
def test_the_fault_record_is_not_read_after_power_on(
    name: str, power_on: bool, folder: Path
) -> None:
    """Its words have no valid ECC then. The flag is cleared for the next reset."""
    _, flag = registers(name).fields["RCC_RSR_PORRSTF"]
    started = start(board(name), folder, {"RCC_RSR": flag if power_on else 0})
    assert (FORGET in started.lines) == power_on
    assert started.field("RCC_RSR_RMVF") == 1


@pytest.mark.parametrize("name", [b.name for b in REAL.values() if b.external])
def test_memory_beside_the_chip_is_made_readable(name: str, folder: Path) -> None:
    """Its pins, its clock, the commands to the flash; the board's file tells the same time."""
    target = board(name)
    assert target.external is not None
    started = start(target, folder)
    for pin, function in target.external.pins.values():
        port, number = f"GPIO{pin[1]}", int(pin[2:])
        assert started.register(f"{port}_MODER") >> 2 * number & 3 == 2
        assert started.register(f"{port}_OSPEEDR") >> 2 * number & 3 == 3
        assert started.register(f"{port}_PUPDR") >> 2 * number & 3 == 0
        assert started.register(f"{port}_AFR[{number // 8}]") >> 4 * (number % 8) & 15 == function
        enables = [f for f in started.chip.fields if re.search(rf"ENR\d?_{port}EN$", f)]
        assert len(enables) == 1 and started.field(enables[0])
    (bank,) = [m for m in target.memories if m.name == target.external.bank]
    found = external.mapped(started, target)
    assert started.beside == 0 and started.identity == external.IDENTITIES[name][1]
    assert found.size_bytes == bank.size_bytes and found.origin == bank.origin
    assert bank.timing is not None
    one = bank.timing.width_bytes * 8 // found.data_lines
    cycles = target.clock_hz / found.clock_hz
    assert bank.timing.read_cycles == (found.command_clocks + one - 1) * cycles
    assert bank.timing.burst_cycles == one * cycles
    if target.core.name == "cortex-m7":
        regions = [
            (at, value)
            for at, value in started.writes
            if at in (started.chip.addresses["MPU_RBAR"], started.chip.addresses["MPU_RASR"])
        ]
        (_, base), (_, access) = regions[-2:]
        assert base == bank.origin and 2 << (access >> 1 & 31) == bank.size_bytes
        assert access >> 24 & 7 == 6 and access >> 28 & 1 and access >> 16 & 0x3F == 2
        assert access & 1 and access >> 8 & 0xFF == 0


def test_the_winbond_flash_of_revision_c_03_is_told_by_its_identity(folder: Path) -> None:
    """An STM32F746G-DISCO from revision C-03 on has a W25Q128J: six clocks of wait in 0xEB, and no
    volatile configuration register (stm32746g_discovery_qspi.c:94, :129, :149 and :193 of ST's
    32f746gdiscovery-bsp at b639a332)."""
    target = board("f746g-disco")
    started = start(target, folder, {"QUADSPI_DR": external.WINBOND})
    found = external.mapped(started, target)
    assert started.beside == 0 and started.identity == external.WINBOND
    assert found.command_clocks == 8 + 6 + 6 and found.data_lines == 4
    assert found.clock_hz == 108 * MHZ


@pytest.mark.parametrize("name", [b.name for b in REAL.values() if b.external])
def test_a_macronix_flash_gets_its_time_after_a_reset(name: str, folder: Path) -> None:
    """ST's driver waits 100 ms (b_u585i_iot02a_ospi.c:1634 of b-u585i-iot02a-bsp at 3e2b36a): one
    that was erasing says that it is ready before."""
    started = start(board(name), folder)
    pauses = [i for i, line in enumerate(started.lines) if line == "# paused 100"]
    assert len(pauses) == (name != "f746g-disco")
    for at in pauses:
        command = f"{started.chip.addresses[external.IDENTITIES[name][0][:-2] + 'IR']:x}"
        sent = [line for line in started.lines[:at] if line.split()[0] == command]
        assert int(sent[-1].split()[1], 16) == 0x9966  # the last reset, before any status


@pytest.mark.parametrize("name", [b.name for b in REAL.values() if b.external])
def test_another_memory_beside_the_chip_is_not_read(name: str, folder: Path) -> None:
    """Nothing is mapped for a memory whose commands are not known: a false one reads bytes."""
    register, _ = external.IDENTITIES[name]
    started = start(board(name), folder, {register: 0x123456})
    assert (started.beside, started.identity) == (UNKNOWN, 0x123456)
    function = "QUADSPI_CCR_FMODE" if register.startswith("QUAD") else register[:-2] + "CR_FMODE"
    assert started.field(function) != 3


@pytest.mark.parametrize("name", [b.name for b in REAL.values() if b.external])
def test_a_memory_beside_the_chip_that_is_silent_ends_in_a_status(name: str, folder: Path) -> None:
    """No transfer ends: the start-up goes on, and tells which flag did not come."""
    target = board(name)
    done = run(target, folder, CACHE_FIRST if target.core.name in CACHED else {}, SHORT, flags=())
    assert done.returncode == 0, done.stderr
    started = Started(registers(name), tuple(done.stdout.splitlines()), {})
    controller = external.IDENTITIES[name][0].partition("_")[0]
    at, mask = started.chip.fields[f"{controller}_SR_TCF"]
    assert started.beside == SILENT
    assert started.waits_for[:4] == (START_WAITS, at, mask, mask)


@pytest.mark.parametrize("name", SILICON)
def test_a_flag_that_never_comes_is_left_for_a_debug_probe(name: str, folder: Path) -> None:
    """The oscillator or its switch does not answer: no wait is endless, and RAM tells which."""
    target = board(name)
    done = run(target, folder, {}, SHORT, follows=())
    assert done.returncode == STOPPED, done.stderr
    started = Started(registers(name), tuple(done.stdout.splitlines()), {})
    magic, address, mask, value, held = started.waits_for
    assert magic == START_WAITS and held & mask != value
    assert address in started.chip.addresses.values()


@pytest.mark.parametrize("name", SILICON)
def test_a_byte_is_taken_once(name: str, folder: Path) -> None:
    """An interrupt that comes once more, or after an overrun only, brings none."""
    target = board(name)
    assert target.uart is not None
    old = target.firmware_sources[-1].endswith("usart_v1.c")
    flags = "RXNE_RXFNE" if "THIMBLE_USART_FIFO" in target.defines else "RXNE"
    status, data = ("SR", "DR") if old else ("ISR", "RDR")
    status = f"{target.uart.name}_{status}"
    _, arrived = registers(name).fields[f"{status}_{flags}"]
    for bits, taken in ((arrived, 0x5A), (0, -1)):
        started = start(target, folder, {status: bits, f"{target.uart.name}_{data}": 0x5A})
        assert started.lines[-1] == f"# took {taken}"


def test_the_simulated_chip_has_no_other_registers_or_bits(folder: Path) -> None:
    """What the firmware was wrong about once: an address, and a reserved bit."""
    target = board("nucleo-h743zi")
    chip = registers(target.name)
    fewer = {name: at for name, at in chip.addresses.items() if name != "SYSCFG_PWRCR"}
    values = {"DBGMCU_IDCODE": 0x20030450, **CACHE_FIRST}
    done = run(target, folder, values, chip=replace(chip, addresses=fewer))
    assert "no register at 5800042c" in done.stderr
    overdriven = board("f4-discovery")  # has no over-drive, and one bit of VOS
    done = run(overdriven, folder, {}, defines=["-DTHIMBLE_OVERDRIVE=1"])
    assert "reserved bits 00010000 of 40007000" in done.stderr

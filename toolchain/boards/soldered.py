"""Macros that tell the firmware of a board's serial port and clocks, from the chip's facts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolchain.boards.board_model import External, Uart
from toolchain.boards.chip_model import Bank, Chip, Gpio
from toolchain.boards.clock import CORE, Clocks, Factors
from toolchain.boards.entries import ExternalEntry
from toolchain.errors import InputError

_PIN = re.compile(r"P(?P<port>[A-Z])(?P<number>\d{1,2})")
_PIN_MOST = 15
_FUNCTION_MOST = 15


def uart_defines(on: Chip, uart: Uart, where: str) -> dict[str, int]:
    """Base address, interrupt, clock enables and pins. Empty for a chip whose UARTs are not listed.

    Raises InputError, beginning with `where`, where the chip has no such UART or port, or a pin or
    its function is none.
    """
    if not on.uarts:
        return {}
    place = f"{where}: uart"
    serial = on.uarts.get(uart.name)
    if serial is None:
        raise InputError(
            f"{place}: name: {on.name} has no {uart.name!r} in its file; it has "
            f"{', '.join(on.uarts)}"
        )
    defines = {"THIMBLE_USART_BASE": serial.base, "THIMBLE_UART_IRQ": serial.irq}
    if serial.brr_factor != 1:
        defines["THIMBLE_USART_BRR_FACTOR"] = serial.brr_factor
    if not (uart.tx and uart.rx):
        return defines
    if on.gpio is None:
        raise InputError(f"{place}: the file of {on.name} has no [gpio], which pins need")
    for function in uart.functions:
        if not 0 <= function <= _FUNCTION_MOST:
            raise InputError(f"{place}: function is {function}, not 0 to {_FUNCTION_MOST}")
    bits = 0
    for role, name in (("tx", uart.tx), ("rx", uart.rx)):
        port, number = _pin(on.name, on.gpio, name, f"{place}: {role}")
        bits |= 1 << port + on.gpio.enable_first_bit
        defines[f"THIMBLE_{role.upper()}_PORT"] = on.gpio.base + port * on.gpio.step
        defines[f"THIMBLE_{role.upper()}_PIN"] = number
    defines |= {
        "THIMBLE_GPIO_ENABLE": on.gpio.enable,
        "THIMBLE_GPIO_ENABLE_BITS": bits,
        "THIMBLE_TX_FUNCTION": uart.functions[0],
        "THIMBLE_RX_FUNCTION": uart.functions[1],
        "THIMBLE_USART_ENABLE": serial.enable,
        "THIMBLE_USART_ENABLE_BITS": serial.enable_bits,
    }
    return defines


def _pin(chip: str, gpio: Gpio, name: str, where: str) -> tuple[int, int]:
    """The numbers of the port and of the pin. Raises InputError for a pin that is none."""
    match = _PIN.fullmatch(name)
    if match is None or int(match["number"]) > _PIN_MOST:
        raise InputError(f"{where} is {name!r}; a pin is like PA2, at most P.15")
    if match["port"] not in gpio.ports:
        raise InputError(f"{where} is {name}; {chip} has ports {gpio.ports}")
    return ord(match["port"]) - ord("A"), int(match["number"])


def external_of(entry: ExternalEntry, where: str) -> External:
    """The memory's signals with their pins. Raises InputError for a pin not like "PB2 9"."""
    pins = {}
    for signal, text in entry.pins.items():
        name, _, function = text.partition(" ")
        if not function.isdecimal() or int(function) > _FUNCTION_MOST:
            raise InputError(
                f"{where}: external: pins.{signal} is {text!r}; a pin and its alternate function, "
                f"0 to {_FUNCTION_MOST}, are like 'PB2 9'"
            )
        pins[signal] = name, int(function)
    return External(entry.bank, entry.sources, pins)


def external_defines(
    on: Chip, entry: ExternalEntry, beside: Mapping[str, Bank], made: Clocks | None, where: str
) -> dict[str, int | str]:
    """Macros for the memory beside the chip: its place, its clock's divider, its pins (port, pin
    and function in four bits each, or eight of the port).

    Raises InputError where the bank is none of those `beside` the chip, is no power of two at a
    multiple of itself, or runs at another clock than the divider makes, and for a wrong pin.
    """
    place = f"{where}: external"
    bank = beside.get(entry.bank)
    if bank is None or bank.timing is None:
        names = ", ".join(beside) or "none"
        raise InputError(
            f"{place}: bank: there is no [[memory]] {entry.bank!r} with a timing in this file; "
            f"there are {names}"
        )
    size, origin = bank.memory.size_bytes, bank.memory.origin
    if size & (size - 1) or origin % size:
        raise InputError(
            f"{place}: {entry.bank} has {size:,} bytes at {origin:#x}; the memory protection "
            "unit takes a power of two at a multiple of itself"
        )
    clocks = {} if made is None else {CORE: made.core_hz, **made.others}
    if entry.clock not in clocks or on.gpio is None:
        raise InputError(
            f"{place}: clock is {entry.clock!r}; {on.name} has {', '.join(clocks) or 'none'}"
        )
    bus_hz = bank.timing.bus_hz or clocks[CORE] / bank.timing.divider
    if entry.divider < 1 or clocks[entry.clock] != bus_hz * entry.divider:
        raise InputError(
            f"{place}: divider is {entry.divider}, of {clocks[entry.clock]:,} Hz; the timing of "
            f"{entry.bank} says {bus_hz:,.0f} Hz"
        )
    bits, pins = 0, []
    for signal, (name, function) in external_of(entry, where).pins.items():
        port, number = _pin(on.name, on.gpio, name, f"{place}: pins.{signal}")
        bits |= 1 << port + on.gpio.enable_first_bit
        pins.append(f"0x{port << 8 | number << 4 | function:X}u")
    return {
        "THIMBLE_EXTERNAL_ORIGIN": origin,
        "THIMBLE_EXTERNAL_SIZE_LOG2": size.bit_length() - 1,
        "THIMBLE_EXTERNAL_DIVIDER": entry.divider,
        "THIMBLE_EXTERNAL_GPIO_BITS": bits,
        "THIMBLE_EXTERNAL_GPIO": on.gpio.base,
        "THIMBLE_EXTERNAL_GPIO_STEP": on.gpio.step,
        "THIMBLE_EXTERNAL_PINS": ",".join(pins),
    }


def clock_defines(
    on: Chip, chosen: Factors, made: Clocks, uart: Uart | None, where: str
) -> Mapping[str, int]:
    """The PLL's factors, the dividers of the buses (`THIMBLE_<BUS>_DIVIDER`), the UART's clock.

    Raises InputError where the chip's file has no such bus for the UART.
    """
    assert on.clock is not None
    defines = {f"THIMBLE_PLL_{name.upper()}": getattr(chosen, name) for name in ("m", "n", "p")}
    for bus in on.clock.bus:
        defines[f"THIMBLE_{bus.upper()}_DIVIDER"] = chosen.bus.get(bus, 1)
    if uart is not None and uart.name in on.uarts:
        clock = on.uarts[uart.name].clock
        if clock not in made.others:
            raise InputError(
                f"{where}: uart: {uart.name} runs on {clock!r}, which {on.name} has not; it has "
                f"{', '.join(made.others)}"
            )
        defines["THIMBLE_USART_CLOCK_HZ"] = made.others[clock]
    return defines

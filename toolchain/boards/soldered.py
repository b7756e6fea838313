"""What the firmware is told of a board's serial port and clocks, from the chip's facts."""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolchain.boards.board_model import Uart
from toolchain.boards.chip_model import Chip
from toolchain.boards.clock import Clocks, Factors
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
    found = on.uarts.get(uart.name)
    if found is None:
        raise InputError(
            f"{place}: name: {on.name} has no {uart.name!r} in its file; it has "
            f"{', '.join(on.uarts)}"
        )
    defines = {"THIMBLE_USART_BASE": found.base, "THIMBLE_UART_IRQ": found.irq}
    if found.brr_factor != 1:
        defines["THIMBLE_USART_BRR_FACTOR"] = found.brr_factor
    if not (uart.tx and uart.rx):
        return defines
    if on.gpio is None:
        raise InputError(f"{place}: the file of {on.name} has no [gpio], which pins need")
    for function in uart.functions:
        if not 0 <= function <= _FUNCTION_MOST:
            raise InputError(f"{place}: function is {function}, not 0 to {_FUNCTION_MOST}")
    bits = 0
    for role, name in (("tx", uart.tx), ("rx", uart.rx)):
        match = _PIN.fullmatch(name)
        if match is None or int(match["number"]) > _PIN_MOST:
            raise InputError(f"{place}: {role} is {name!r}; a pin is like PA2, at most P.15")
        port = ord(match["port"]) - ord("A")
        if match["port"] not in on.gpio.ports:
            raise InputError(f"{place}: {role} is {name}; {on.name} has ports {on.gpio.ports}")
        bits |= 1 << port + on.gpio.enable_first_bit
        defines[f"THIMBLE_{role.upper()}_PORT"] = on.gpio.base + port * on.gpio.step
        defines[f"THIMBLE_{role.upper()}_PIN"] = int(match["number"])
    defines |= {
        "THIMBLE_GPIO_ENABLE": on.gpio.enable,
        "THIMBLE_GPIO_ENABLE_BITS": bits,
        "THIMBLE_TX_FUNCTION": uart.functions[0],
        "THIMBLE_RX_FUNCTION": uart.functions[1],
        "THIMBLE_USART_ENABLE": found.enable,
        "THIMBLE_USART_ENABLE_BITS": found.enable_bits,
    }
    return defines


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

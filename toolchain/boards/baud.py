"""Whether a UART and the adapter at its other end keep one speed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolchain.boards.board_model import Uart
from toolchain.errors import InputError
from toolchain.files.records import field_of

_DIVISORS = {1: (16, 0xFFFF), 256: (0x300, 0xFFFFF)}
"""The least and most that BRR of a USART (16-fold oversampling) and of an LPUART may hold, keyed by
`brr_factor`, the steps of BRR for one clock: UART_BRR_MIN to LPUART_BRR_MAX,
stm32l4xx_hal_uart.c:200 (a9f8b8a).
"""
_ST_LINK = "0483:37"
_ST_LINK_CLOCK_HZ = 36_000_000
"""Assumed clock of the UART in an ST-LINK/V2-1, an STM32F103 at 72 MHz: half of the core's."""
_MOST_BAUD_ERROR = 0.02
"""A receiver that samples 16 times a bit bears 3 % and more in all, the two oscillators' errors
among them (RM0390 25.4.5, RM0351 36.5.5), of which the internal one of these boards takes 1 %."""


def _baud_error(clock_hz: int, baud: int, steps: int = 1) -> float | None:
    """How far the nearest speed is from `baud`, as a share of it; None where no divisor fits."""
    divisor = (clock_hz * steps + baud // 2) // baud
    low, high = _DIVISORS[steps]
    return abs(clock_hz * steps / divisor / baud - 1) if low <= divisor <= high else None


def check_baud(
    uart: Uart, defines: Mapping[str, Any], usb_ids: tuple[str, ...], where: str
) -> None:
    """Check the speed of a line. Raises InputError where the board's UART and an ST-LINK's cannot
    both keep it."""
    if uart.baud < 1:
        raise InputError(f"{where}: [uart] baud must be 1 or more, not {uart.baud}")
    place = f"{where}: firmware"
    clock_hz = field_of(defines, "THIMBLE_USART_CLOCK_HZ", int, place, 0)
    steps = field_of(defines, "THIMBLE_USART_BRR_FACTOR", int, place, 1)
    if not clock_hz:
        return
    if clock_hz < 1 or steps not in _DIVISORS:
        raise InputError(
            f"{place}: THIMBLE_USART_CLOCK_HZ is 1 or more and THIMBLE_USART_BRR_FACTOR one of "
            f"{', '.join(map(str, _DIVISORS))}, not {clock_hz} and {steps}"
        )
    ours = _baud_error(clock_hz, uart.baud, steps)
    linked = any(usb_id.startswith(_ST_LINK) for usb_id in usb_ids)
    other = _baud_error(_ST_LINK_CLOCK_HZ, uart.baud) if linked else 0.0
    for whose, error in ((f"{uart.name} at {clock_hz:,} Hz", ours), ("the ST-LINK's UART", other)):
        if error is None:
            raise InputError(f"{where}: [uart] baud: {whose} has no divisor for {uart.baud:,}")
    if ours is not None and other is not None and ours + other >= _MOST_BAUD_ERROR:
        raise InputError(
            f"{where}: [uart] baud: {uart.name} at {clock_hz:,} Hz misses {uart.baud:,} by "
            f"{ours:.1%}, the adapter by {other:.1%}: together {_MOST_BAUD_ERROR:.0%} or more; "
            "take a lower speed"
        )

"""STM32C0: RM0490, RCC_CR and FLASH_ACR. There is no PLL."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (("RCC_CR_HSION", "RCC_CR_HSIRDY"),)


def first(target: Board) -> Mapping[str, int]:
    return {"FLASH_ACR": 0x40000, "RCC_CR": 0x1500}


def quickened(started: Started) -> int:
    """Where the oscillator, divided by 4 after a reset, is divided no more."""
    control, divider = started.chip.fields["RCC_CR_HSIDIV"]
    return started.when(lambda at, value: at == control and not value & divider)


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    core = 48 * MHZ / 2 ** started.field("RCC_CR_HSIDIV")
    assert started.field("RCC_CFGR_SW") == 0
    assert started.field("RCC_CFGR_HPRE") == started.field("RCC_CFGR_PPRE") == 0
    assert started.field("FLASH_ACR_LATENCY") == (core > 24 * MHZ)
    assert started.field("FLASH_ACR_DBG_SWEN") == 1  # a probe still gets in
    assert started.field("RCC_CCIPR_USART1SEL") == 0
    return {"core": core, "source": 48 * MHZ, "apb": core, "usart": core}


FAMILY = Family(("stm32c0",), follows, clocks, first, quickened=quickened)

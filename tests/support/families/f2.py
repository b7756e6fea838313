"""STM32F2: RM0033 5.3.2, 5.3.3, 2.3.2. One voltage for every clock."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import APB, MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (("RCC_CR_HSION", "RCC_CR_HSIRDY"), ("RCC_CR_PLLON", "RCC_CR_PLLRDY"))


def first(target: Board) -> Mapping[str, int]:
    return {"DBGMCU_CR": 0, "RCC_CR": 0x83, "RCC_PLLCFGR": 0x24003010}


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLLCFGR_PLLSRC") == 0  # from the internal 16 MHz
    into = 16 * MHZ / started.field("RCC_PLLCFGR_PLLM")
    assert 192 <= started.field("RCC_PLLCFGR_PLLN") <= 432
    vco = into * started.field("RCC_PLLCFGR_PLLN")
    core = vco / (2, 4, 6, 8)[started.field("RCC_PLLCFGR_PLLP")]
    assert MHZ <= into <= 2 * MHZ and 192 * MHZ <= vco <= 432 * MHZ and core <= 120 * MHZ
    assert started.field("RCC_PLLCFGR_PLLQ") >= 2
    assert vco / started.field("RCC_PLLCFGR_PLLQ") <= 48 * MHZ
    assert started.field("RCC_CFGR_SW") == 2 and started.field("RCC_CFGR_HPRE") == 0
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (30 * MHZ)) - 1  # at 2.7 to 3.6 V
    apb1 = core / APB[started.field("RCC_CFGR_PPRE1")]
    apb2 = core / APB[started.field("RCC_CFGR_PPRE2")]
    assert apb1 <= 30 * MHZ and apb2 <= 60 * MHZ
    assert target.uart is not None
    usart = apb2 if target.uart.name in ("USART1", "USART6") else apb1
    return {"core": core, "source": 16 * MHZ, "apb1": apb1, "apb2": apb2, "usart": usart}


FAMILY = Family(("stm32f2",), follows, clocks, first)

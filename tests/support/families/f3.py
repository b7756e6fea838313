"""STM32F303xD/xE: RM0316, RCC and FLASH. What ran before may have left reads in half a cycle on."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import APB, MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (("RCC_CR_HSION", "RCC_CR_HSIRDY"), ("RCC_CR_PLLON", "RCC_CR_PLLRDY"))


def first(target: Board) -> Mapping[str, int]:
    return {"RCC_CR": 0x83, "FLASH_ACR": 0x30, "RCC_CFGR3": 0x30003}


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_CFGR_PLLSRC") == 1  # the internal 8 MHz behind PREDIV
    into = 8 * MHZ / (started.field("RCC_CFGR2_PREDIV") + 1)
    core = into * min(started.field("RCC_CFGR_PLLMUL") + 2, 16)
    assert started.field("RCC_CFGR_SW") == 2 and started.field("RCC_CFGR_HPRE") == 0
    assert 1 * MHZ <= into <= 25 * MHZ and 16 * MHZ <= core <= 72 * MHZ
    assert started.field("FLASH_ACR_LATENCY") == (core > 24 * MHZ) + (core > 48 * MHZ)
    assert started.field("FLASH_ACR_HLFCYA") == 0  # for 8 MHz at most
    factors, fast = started.chip.addresses["RCC_CFGR"], started.when_set("RCC_CR_PLLON")
    multiplied = started.when(lambda at, value: at == factors and value >> 18 & 15 != 0)
    assert multiplied < fast  # the factor cannot change while the PLL runs
    apb1 = core / APB[started.field("RCC_CFGR_PPRE1")]
    apb2 = core / APB[started.field("RCC_CFGR_PPRE2")]
    assert apb1 <= 36 * MHZ
    assert target.uart is not None
    assert started.field(f"RCC_CFGR3_{target.uart.name}SW") == 0
    usart = apb2 if target.uart.name == "USART1" else apb1
    return {"core": core, "source": 8 * MHZ, "apb1": apb1, "apb2": apb2, "usart": usart}


FAMILY = Family(("stm32f3",), follows, clocks, first)

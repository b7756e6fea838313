"""STM32G0: RM0444 5.4.4, 3.3.4."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (("RCC_CR_HSION", "RCC_CR_HSIRDY"), ("RCC_CR_PLLON", "RCC_CR_PLLRDY"))


def first(target: Board) -> Mapping[str, int]:
    return {"PWR_CR1": 0x200, "FLASH_ACR": 0x40200, "RCC_CR": 0x500}


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLLCFGR_PLLSRC") == 2  # from the internal 16 MHz
    into = 16 * MHZ / (started.field("RCC_PLLCFGR_PLLM") + 1)
    vco = into * started.field("RCC_PLLCFGR_PLLN")
    core = vco / (started.field("RCC_PLLCFGR_PLLR") + 1)
    assert 4 * MHZ <= into <= 8 * MHZ and 64 * MHZ <= vco <= 344 * MHZ
    assert started.field("RCC_PLLCFGR_PLLREN") == 1 and started.field("RCC_CR_HSIDIV") == 0
    assert started.field("RCC_CFGR_SW") == 2
    assert started.field("RCC_CFGR_HPRE") == started.field("RCC_CFGR_PPRE") == 0
    assert started.field("FLASH_ACR_LATENCY") == (core > 24 * MHZ) + (core > 48 * MHZ)
    assert started.field("FLASH_ACR_DBG_SWEN") == 1  # a probe still gets in
    assert started.field("PWR_CR1_VOS") == 1
    assert target.uart is not None
    assert started.field(f"RCC_CCIPR_{target.uart.name}SEL") == 2
    return {"core": core, "source": 16 * MHZ, "apb": core, "usart": 16 * MHZ}


FAMILY = Family(("stm32g0",), follows, clocks, first)

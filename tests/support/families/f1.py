"""STM32F1: RM0008 7.3, 3.3.3; RM0041 6.3. An F100 has no wait states; what ran before may have left
reads in half a cycle on, for a slow clock."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import APB, MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (("RCC_CR_HSION", "RCC_CR_HSIRDY"), ("RCC_CR_PLLON", "RCC_CR_PLLRDY"))


def first(target: Board) -> Mapping[str, int]:
    waits = "THIMBLE_FLASH_NEVER_WAITS" not in target.defines
    return {"RCC_CR": 0x83, "FLASH_ACR": 0x30 if waits else 8}


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_CFGR_PLLSRC") == 0  # from half of the internal 8 MHz
    core = 4 * MHZ * min(started.field("RCC_CFGR_PLLMULL") + 2, 16)
    assert started.field("RCC_CFGR_SW") == 2 and started.field("RCC_CFGR_HPRE") == 0
    assert started.field("FLASH_ACR_HLFCYA") == 0  # for 8 MHz at most
    if target.chip.name.startswith("stm32f100"):
        assert 16 * MHZ <= core <= 24 * MHZ
    else:
        assert 16 * MHZ <= core <= 72 * MHZ
        assert started.field("FLASH_ACR_LATENCY") == (core > 24 * MHZ) + (core > 48 * MHZ)
    factors, fast = started.chip.addresses["RCC_CFGR"], started.when_set("RCC_CR_PLLON")
    multiplied = started.when(lambda at, value: at == factors and value >> 18 & 15 != 0)
    assert multiplied < fast  # the factor cannot change while the PLL runs
    apb1 = core / APB[started.field("RCC_CFGR_PPRE1")]
    apb2 = core / APB[started.field("RCC_CFGR_PPRE2")]
    assert target.uart is not None
    usart = apb2 if target.uart.name == "USART1" else apb1
    assert started.field(f"AFIO_MAPR_{target.uart.name}_REMAP") == target.uart.function
    assert started.field("AFIO_MAPR_SWJ_CFG") == 0 and started.field("RCC_APB2ENR_AFIOEN")
    return {"core": core, "source": 8 * MHZ, "apb1": apb1, "apb2": apb2, "usart": usart}


FAMILY = Family(("stm32f1",), follows, clocks, first)

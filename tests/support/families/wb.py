"""STM32WB and WL: RM0434 and RM0453, RCC (PLL, prescalers of both cores), PWR, FLASH."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def _is_wb(target: Board) -> bool:
    return target.chip.family == "stm32wb"


def follows(target: Board) -> Follows:
    half = (("", "RCC_EXTCFGR_C2HPREF"),) if _is_wb(target) else ()
    return (("RCC_CR_HSION", "RCC_CR_HSIRDY"), ("RCC_CR_PLLON", "RCC_CR_PLLRDY"), *half)


def first(target: Board) -> Mapping[str, int]:
    return {"PWR_CR1": 0x200, "FLASH_ACR": 0x600}


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLLCFGR_PLLSRC") == 2  # from the internal 16 MHz
    into = 16 * MHZ / (started.field("RCC_PLLCFGR_PLLM") + 1)
    vco = into * started.field("RCC_PLLCFGR_PLLN")
    core = vco / (started.field("RCC_PLLCFGR_PLLR") + 1)
    assert 2.66 * MHZ <= into <= 16 * MHZ and 96 * MHZ <= vco <= 344 * MHZ
    assert started.field("RCC_PLLCFGR_PLLREN") == 1
    assert started.field("RCC_CFGR_SW") == 3
    for prescaler in ("HPRE", "PPRE1", "PPRE2"):
        assert started.field(f"RCC_CFGR_{prescaler}") == 0
    # The flash runs as fast as the core; the other core at no more than 32 MHz on a WB, 48 on a WL.
    assert started.field("RCC_EXTCFGR_SHDHPRE") == 0
    assert started.field("RCC_EXTCFGR_C2HPRE") == (8 if _is_wb(target) else 0)
    assert core / (2 if _is_wb(target) else 1) <= (32 if _is_wb(target) else 48) * MHZ
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (18 * MHZ)) - 1
    assert started.field("PWR_CR1_VOS") == 1
    assert target.uart is not None
    assert started.field(f"RCC_CCIPR_{target.uart.name}SEL") == 2
    return {"core": core, "source": 16 * MHZ, "apb1": core, "apb2": core, "usart": 16 * MHZ}


FAMILY = Family(("stm32wb", "stm32wl"), follows, clocks, first)

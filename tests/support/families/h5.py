"""STM32H5: RM0481, PWR (scale 0), RCC (HSI, PLL1), FLASH (wait states, WRHIGHFREQ), ICACHE."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (
        ("ICACHE_CR_CACHEINV", "ICACHE_SR_BSYENDF"),
        ("RCC_CR_HSION", "RCC_CR_HSIRDY"),
        ("", "RCC_CR_HSIDIVF"),
        ("RCC_CR_PLL1ON", "RCC_CR_PLL1RDY"),
        ("PWR_VOSCR_VOS", "PWR_VOSSR_VOSRDY"),
    )


def first(target: Board) -> Mapping[str, int]:
    return {"RCC_CR": 0x2B, "FLASH_ACR": 0x13}


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_CR_HSIDIV") == 0  # 64 MHz
    assert started.field("RCC_PLL1CFGR_PLL1SRC") == 1  # from it
    into = 64 * MHZ / started.field("RCC_PLL1CFGR_PLL1M")
    vco = into * (started.field("RCC_PLL1DIVR_PLL1N") + 1)
    core = vco / (started.field("RCC_PLL1DIVR_PLL1P") + 1)
    low, high = ((1, 2), (2, 4), (4, 8), (8, 16))[started.field("RCC_PLL1CFGR_PLL1RGE")]
    assert low * MHZ <= into <= high * MHZ and 192 * MHZ <= vco <= 836 * MHZ
    assert started.field("RCC_PLL1CFGR_PLL1VCOSEL") == 0  # the wide VCO
    assert started.field("RCC_PLL1CFGR_PLL1PEN") == 1
    assert started.field("RCC_PLL1CFGR_PLL1FRACEN") == 0
    assert started.field("RCC_CFGR1_SW") == 3
    for prescaler in ("HPRE", "PPRE1", "PPRE2", "PPRE3"):
        assert started.field(f"RCC_CFGR2_{prescaler}") == 0
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (42 * MHZ)) - 1
    assert started.field("FLASH_ACR_WRHIGHFREQ") == 2  # 168 MHz and above
    assert started.field("PWR_VOSCR_VOS") == 3  # scale 0
    assert started.when_set("PWR_VOSCR_VOS") < started.when_set("RCC_CR_PLL1ON")
    assert target.uart is not None and target.uart.name == "USART3"
    assert started.field("RCC_CCIPR1_USART3SEL") == 3
    buses = dict.fromkeys(("apb1", "apb2", "apb3"), core)
    return {"core": core, "source": 64 * MHZ, **buses, "usart": 64 * MHZ}


FAMILY = Family(
    ("stm32h5",),
    follows,
    clocks,
    first,
    switch=("RCC_CFGR1_SW", "RCC_CFGR1_SWS"),
    prescaler="RCC_CFGR2_HPRE",
    debugged_asleep="",
)

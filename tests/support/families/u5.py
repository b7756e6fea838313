"""STM32U5: RM0456, PWR (EPOD booster, SMPS), RCC (PLL1), FLASH (wait states of range 1), ICACHE."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board

ICACHE: Follows = (("ICACHE_CR_CACHEINV", "ICACHE_SR_BSYENDF"),)


def follows(target: Board) -> Follows:
    return (
        *ICACHE,
        ("RCC_CR_HSION", "RCC_CR_HSIRDY"),
        ("RCC_CR_PLL1ON", "RCC_CR_PLL1RDY"),
        ("PWR_VOSR_VOS", "PWR_VOSR_VOSRDY"),
        ("PWR_VOSR_BOOSTEN", "PWR_VOSR_BOOSTRDY"),
        ("PWR_CR3_REGSEL", "PWR_SVMSR_REGS"),
    )


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLL1CFGR_PLL1SRC") == 2  # from the internal 16 MHz
    into = 16 * MHZ / (started.field("RCC_PLL1CFGR_PLL1M") + 1)
    vco = into * (started.field("RCC_PLL1DIVR_PLL1N") + 1)
    core = vco / (started.field("RCC_PLL1DIVR_PLL1R") + 1)
    assert 4 * MHZ <= into <= 16 * MHZ and 128 * MHZ <= vco <= 544 * MHZ
    assert started.field("RCC_PLL1CFGR_PLL1RGE") == (3 if into > 8 * MHZ else 0)
    assert started.field("RCC_PLL1CFGR_PLL1REN") == 1
    assert started.field("RCC_PLL1CFGR_PLL1FRACEN") == 0
    assert started.field("RCC_CFGR1_SW") == 3
    for prescaler in ("HPRE", "PPRE1", "PPRE2"):
        assert started.field(f"RCC_CFGR2_{prescaler}") == 0
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (32 * MHZ)) - 1
    assert started.field("PWR_VOSR_VOS") == 3  # range 1
    assert started.field("PWR_CR3_REGSEL") == ("THIMBLE_SMPS" in target.defines)
    # The booster takes the PLL's source by 1: chosen before it is on, and it before the PLL.
    assert started.field("RCC_PLL1CFGR_PLL1MBOOST") == 0
    chosen = started.when_set("RCC_PLL1CFGR_PLL1REN")
    assert chosen < started.when_set("PWR_VOSR_VOS") < started.when_set("PWR_VOSR_BOOSTEN")
    assert started.when_set("PWR_VOSR_BOOSTEN") < started.when_set("RCC_CR_PLL1ON")
    assert target.uart is not None and target.uart.name == "USART1"
    assert started.field("RCC_CCIPR1_USART1SEL") == 2
    buses = dict.fromkeys(("apb1", "apb2", "apb3"), core)
    return {"core": core, "source": 16 * MHZ, **buses, "usart": 16 * MHZ}


FAMILY = Family(
    ("stm32u5",),
    follows,
    clocks,
    switch=("RCC_CFGR1_SW", "RCC_CFGR1_SWS"),
    prescaler="RCC_CFGR2_HPRE",
    debugged_asleep="",
)

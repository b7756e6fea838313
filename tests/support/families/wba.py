"""STM32WBA5x: RM0493, PWR (range 1, SMPS), RCC (PLL1, its prescaler, AHB5), FLASH, ICACHE."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board

AHB5 = {0: 1, 4: 2, 5: 3, 6: 4, 7: 6}


def follows(target: Board) -> Follows:
    smps = (("PWR_CR3_REGSEL", "PWR_SVMSR_REGS"),) if "THIMBLE_SMPS" in target.defines else ()
    return (
        ("ICACHE_CR_CACHEINV", "ICACHE_SR_BSYENDF"),
        ("RCC_CR_HSION", "RCC_CR_HSIRDY"),
        ("RCC_CR_PLL1ON", "RCC_CR_PLL1RDY"),
        ("", "RCC_PLL1CFGR_PLL1RCLKPRERDY"),
        ("PWR_VOSR_VOS", "PWR_VOSR_VOSRDY"),
        *smps,
    )


def quickened(started: Started) -> int:
    """The PLL is the core's clock at half speed, and then at full speed."""
    at, prescaled = started.chip.fields["RCC_PLL1CFGR_PLL1RCLKPRE"]
    changes = [i for i, (address, _) in enumerate(started.writes) if address == at]
    values = [bool(started.writes[i][1] & prescaled) for i in changes]
    switched = started.when_set("RCC_CFGR1_SW")
    assert values == [True, False] and changes[0] < switched < changes[1]
    return switched


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLL1CFGR_PLL1SRC") == 2  # from the internal 16 MHz
    into = 16 * MHZ / (started.field("RCC_PLL1CFGR_PLL1M") + 1)
    vco = into * (started.field("RCC_PLL1DIVR_PLL1N") + 1)
    core = vco / (started.field("RCC_PLL1DIVR_PLL1R") + 1)
    assert 4 * MHZ <= into <= 16 * MHZ and 128 * MHZ <= vco <= 544 * MHZ
    assert started.field("RCC_PLL1CFGR_PLL1RGE") == (3 if into > 8 * MHZ else 0)
    assert started.field("RCC_PLL1CFGR_PLL1REN") == 1
    assert started.field("RCC_PLL1CFGR_PLL1FRACEN") == 0
    assert started.field("RCC_PLL1CFGR_PLL1RCLKPRESTEP") == 0
    assert started.field("RCC_CFGR1_SW") == 3
    for prescaler in ("CFGR2_HPRE", "CFGR2_PPRE1", "CFGR2_PPRE2", "CFGR3_PPRE7"):
        assert started.field(f"RCC_{prescaler}") == 0
    ahb5 = core / AHB5[started.field("RCC_CFGR4_HPRE5")]
    assert ahb5 <= 32 * MHZ and started.field("RCC_CFGR4_HDIV5") == 0
    divided = started.when(lambda at, _: at == started.chip.addresses["RCC_CFGR4"])
    assert divided < started.when_set("RCC_CFGR1_SW")
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (32 * MHZ)) - 1
    assert started.field("PWR_VOSR_VOS") == 1  # range 1
    assert started.when_set("PWR_VOSR_VOS") < started.when_set("RCC_CR_PLL1ON")
    if "THIMBLE_SMPS" in target.defines:
        assert started.field("PWR_CR3_REGSEL") == 1
    assert target.uart is not None and target.uart.name == "USART1"
    assert started.field("RCC_CCIPR1_USART1SEL") == 2
    buses = dict.fromkeys(("apb1", "apb2", "apb7"), core)
    return {"core": core, "source": 16 * MHZ, "ahb5": ahb5, **buses, "usart": 16 * MHZ}


FAMILY = Family(
    ("stm32wba",),
    follows,
    clocks,
    switch=("RCC_CFGR1_SW", "RCC_CFGR1_SWS"),
    prescaler="RCC_CFGR2_HPRE",
    quickened=quickened,
    debugged_asleep="",
)

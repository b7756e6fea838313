"""STM32U3: RM0487, PWR (EPOD booster, ranges), RCC (MSIS, no PLL), FLASH (wait states), ICACHE."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (
        ("ICACHE_CR_CACHEINV", "ICACHE_SR_BSYENDF"),
        ("RCC_CR_HSION", "RCC_CR_HSIRDY"),
        ("RCC_CR_MSISON", "RCC_CR_MSISRDY"),
        ("PWR_VOSR_R1EN", "PWR_VOSR_R1RDY"),
        ("PWR_VOSR_BOOSTEN", "PWR_VOSR_BOOSTRDY"),
    )


def first(target: Board) -> Mapping[str, int]:
    """MSIS of 12 MHz, range 2."""
    return {"RCC_CR": 5, "RCC_ICSCR1": 0xA0800000, "PWR_VOSR": 0x20002, "FLASH_ACR": 1}


def quickened(started: Started) -> int:
    """Back from the 16 MHz to MSIS, to which 0 chooses."""
    switch, _ = started.chip.fields["RCC_CFGR1_SW"]
    numbers = [i for i, (at, _) in enumerate(started.writes) if at == switch]
    assert [started.writes[i][1] & 3 for i in numbers] == [1, 0]
    return numbers[-1]


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_ICSCR1_MSIRGSEL") == 1  # from this register, not a wake-up's
    assert started.field("RCC_ICSCR1_MSISSEL") == 0  # MSIRC0
    core = 96 * MHZ / 2 ** started.field("RCC_ICSCR1_MSISDIV")
    assert started.field("RCC_ICSCR2_MSITRIM0") == started.field("RCC_ICSCR2_MSITRIM1") == 0x20
    assert not started.field("RCC_CR_MSIPLL0EN") and not started.field("RCC_CR_MSIPLL1EN")
    assert started.field("RCC_CFGR1_SW") == 0
    for prescaler in ("CFGR2_HPRE", "CFGR2_PPRE1", "CFGR2_PPRE2", "CFGR3_PPRE3"):
        assert started.field(f"RCC_{prescaler}") == 0
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (32 * MHZ)) - 1
    assert (started.field("PWR_VOSR_R1EN"), started.field("PWR_VOSR_R2EN")) == (1, 0)
    assert started.field("RCC_CFGR4_BOOSTSEL") == 1  # MSIS, which is on, at 12 MHz, before it
    msis, made_of = started.chip.fields["RCC_ICSCR1_MSISSEL"]
    made = [i for i, (at, _) in enumerate(started.writes) if at == msis]
    assert started.writes[made[-1]][1] & made_of == 0
    assert started.when_set("PWR_VOSR_BOOSTEN") < started.when_set("PWR_VOSR_R1EN") < made[-1]
    assert target.uart is not None and target.uart.name == "USART1"
    assert started.field("RCC_CCIPR1_USART1SEL") == 1  # HSI16
    buses = dict.fromkeys(("apb1", "apb2", "apb3"), core)
    return {"core": core, "source": 96 * MHZ, "HSI16": 16 * MHZ, **buses, "usart": 16 * MHZ}


FAMILY = Family(
    ("stm32u3",),
    follows,
    clocks,
    first,
    switch=("RCC_CFGR1_SW", "RCC_CFGR1_SWS"),
    prescaler="RCC_CFGR2_HPRE",
    quickened=quickened,
    debugged_asleep="",
)

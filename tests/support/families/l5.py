"""STM32L5: RM0438, PWR (range 0), RCC (main PLL), FLASH (wait states of range 0), ICACHE."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (
        ("ICACHE_CR_CACHEINV", "ICACHE_SR_BSYENDF"),
        ("RCC_CR_HSION", "RCC_CR_HSIRDY"),
        ("RCC_CR_PLLON", "RCC_CR_PLLRDY"),
    )


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLLCFGR_PLLSRC") == 2  # from the internal 16 MHz
    into = 16 * MHZ / (started.field("RCC_PLLCFGR_PLLM") + 1)
    vco = into * started.field("RCC_PLLCFGR_PLLN")
    core = vco / (2, 4, 6, 8)[started.field("RCC_PLLCFGR_PLLR")]
    assert 4 * MHZ <= into <= 16 * MHZ and 64 * MHZ <= vco <= 344 * MHZ
    assert started.field("RCC_PLLCFGR_PLLREN") == 1
    assert started.field("RCC_CFGR_SW") == 3
    for prescaler in ("HPRE", "PPRE1", "PPRE2"):
        assert started.field(f"RCC_CFGR_{prescaler}") == 0
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (20 * MHZ)) - 1
    assert started.field("PWR_CR1_VOS") == 0  # range 0
    power = started.chip.addresses["PWR_CR1"]
    raised = started.when(lambda at, value: at == power)
    assert raised < started.when_set("RCC_CR_PLLON")
    through_half = [value >> 4 & 15 for value in started.values("RCC_CFGR")]
    assert 8 in through_half and through_half[-1] == 0
    assert target.uart is not None and target.uart.name == "LPUART1"
    if "G" in (target.uart.tx[1], target.uart.rx[1]):
        assert started.field("PWR_CR2_IOSV") == 1  # port G hangs on VDDIO2
    assert started.field("RCC_CCIPR1_LPUART1SEL") == 2
    return {"core": core, "source": 16 * MHZ, "apb1": core, "apb2": core, "usart": 16 * MHZ}


FAMILY = Family(("stm32l5",), follows, clocks, lambda _: {"PWR_CR1": 0x400}, debugged_asleep="")

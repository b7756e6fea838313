"""STM32L4, L4+, G4: RM0351 6.4.4, 3.3.3; RM0432 6.4.4, 3.3.3, 5.1.8; RM0440, FLASH, PWR, RCC."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def _is_plus(target: Board) -> bool:
    return "THIMBLE_BOOST_MODE" in target.defines


def follows(target: Board) -> Follows:
    return (("RCC_CR_HSION", "RCC_CR_HSIRDY"), ("RCC_CR_PLLON", "RCC_CR_PLLRDY"))


def first(target: Board) -> Mapping[str, int]:
    return {"PWR_CR1": 0x200, **({"PWR_CR5": 0x100} if _is_plus(target) else {})}


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLLCFGR_PLLSRC") == 2  # from the internal 16 MHz
    into = 16 * MHZ / (started.field("RCC_PLLCFGR_PLLM") + 1)
    vco = into * started.field("RCC_PLLCFGR_PLLN")
    core = vco / (2, 4, 6, 8)[started.field("RCC_PLLCFGR_PLLR")]
    least = 2.66 if target.chip.family == "stm32g4" else 4
    assert least * MHZ <= into <= 16 * MHZ and 64 * MHZ <= vco <= 344 * MHZ
    assert started.field("RCC_PLLCFGR_PLLREN") == 1
    assert started.field("RCC_CFGR_SW") == 3 and started.field("RCC_CFGR_HPRE") == 0
    assert started.field("RCC_CFGR_PPRE1") == started.field("RCC_CFGR_PPRE2") == 0
    wait_state_mhz = 20 if _is_plus(target) else 16
    if target.chip.family == "stm32g4":
        wait_state_mhz = 34
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (wait_state_mhz * MHZ)) - 1
    assert started.field("PWR_CR1_VOS") == 1
    assert target.uart is not None
    if _is_plus(target):
        assert started.field("PWR_CR5_R1MODE") == 0
    if "G" in (target.uart.tx[1], target.uart.rx[1]):
        assert started.field("PWR_CR2_IOSV") == 1  # port G hangs on VDDIO2
    through_half = [value >> 4 & 15 for value in started.values("RCC_CFGR")]
    assert 8 in through_half and through_half[-1] == 0
    direct = target.uart.name in ("USART2", "LPUART1")
    assert started.field(f"RCC_CCIPR_{target.uart.name}SEL") == (2 if direct else 0)
    usart = 16 * MHZ if direct else core
    return {"core": core, "source": 16 * MHZ, "apb1": core, "apb2": core, "usart": usart}


FAMILY = Family(("stm32l4", "stm32g4"), follows, clocks, first)

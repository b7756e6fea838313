"""STM32L0: RM0367 7.3, 3.7.1, 6.4.1; L1: RM0038 6.3, 3.9.1, 5.4.1."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (("RCC_CR_HSION", "RCC_CR_HSIRDY"), ("RCC_CR_PLLON", "RCC_CR_PLLRDY"))


def first(target: Board) -> Mapping[str, int]:
    return {"PWR_CR": 0x1000, "RCC_CR": 0x300, "RCC_ICSCR": 0xB000}


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_CFGR_PLLSRC") == 0  # from the internal 16 MHz
    is_l1 = target.chip.family == "stm32l1"
    if is_l1:
        wide, waits = (started.when_set(f"FLASH_ACR_{name}") for name in ("ACC64", "LATENCY"))
        assert started.field("FLASH_ACR_ACC64") and started.field("RCC_CR_CSSON") == 0
        assert wide < waits
    else:
        assert started.field("RCC_CR_HSIDIVEN") == 0
    vco = 16 * MHZ * (3, 4, 6, 8, 12, 16, 24, 32, 48)[started.field("RCC_CFGR_PLLMUL")]
    core = vco / (started.field("RCC_CFGR_PLLDIV") + 1)
    assert vco <= 96 * MHZ and started.field("RCC_CFGR_PLLDIV") > 0
    assert started.field("RCC_CFGR_SW") == 3 and started.field("RCC_CFGR_HPRE") == 0
    assert started.field("RCC_CFGR_PPRE1") == started.field("RCC_CFGR_PPRE2") == 0
    assert started.field("FLASH_ACR_LATENCY") == (core > 16 * MHZ)
    assert started.field("PWR_CR_VOS") == 1
    cfgr, (power, vos) = started.chip.addresses["RCC_CFGR"], started.chip.fields["PWR_CR_VOS"]
    in_range_1 = started.when(lambda at, value: at == power and value & vos == vos & -vos)
    assert in_range_1 < started.when(lambda at, value: at == cfgr)  # 16 MHz is fast for range 2
    assert target.uart is not None
    if not is_l1:
        assert started.field(f"RCC_CCIPR_{target.uart.name}SEL") == 2
    usart = core if is_l1 else 16 * MHZ
    return {"core": core, "source": 16 * MHZ, "apb1": core, "apb2": core, "usart": usart}


FAMILY = Family(("stm32l0", "stm32l1"), follows, clocks, first)

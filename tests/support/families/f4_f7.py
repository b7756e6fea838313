"""STM32F4 and F7: RM0090 7.3.2, RM0390 6.3.2, RM0385 5.3.2, RM0410 5.3.2."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import APB, MHZ, Family, Follows, Started
from toolchain.boards import Board

OVERDRIVE_ABOVE_HZ = {
    "stm32f429": 168 * MHZ,
    "stm32f446": 168 * MHZ,
    "stm32f722": 180 * MHZ,
    "stm32f746": 180 * MHZ,
    "stm32f767": 180 * MHZ,
}
SCALE_1 = {"stm32f405": 1, "stm32f407": 1, "stm32f401": 2}
"""PWR_CR's VOS for the highest clock; 3 where nothing is listed."""


def _power(started: Started) -> str:
    return "PWR_CR1" if "PWR_CR1_VOS" in started.chip.fields else "PWR_CR"


def follows(target: Board) -> Follows:
    status = "PWR_CSR1" if target.chip.family == "stm32f7" else "PWR_CSR"
    power = "PWR_CR1" if target.chip.family == "stm32f7" else "PWR_CR"
    found = [
        ("RCC_CR_HSION", "RCC_CR_HSIRDY"),
        ("RCC_CR_PLLON", "RCC_CR_PLLRDY"),
        ("RCC_CR_PLLON", f"{status}_VOSRDY"),
    ]
    if target.chip.name in OVERDRIVE_ABOVE_HZ:
        found.append((f"{power}_ODEN", f"{status}_ODRDY"))
        found.append((f"{power}_ODSWEN", f"{status}_ODSWRDY"))
    return found


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLLCFGR_PLLSRC") == 0  # from the internal 16 MHz
    into = 16 * MHZ / started.field("RCC_PLLCFGR_PLLM")
    vco = into * started.field("RCC_PLLCFGR_PLLN")
    core = vco / (2, 4, 6, 8)[started.field("RCC_PLLCFGR_PLLP")]
    assert MHZ <= into <= 2 * MHZ and 100 * MHZ <= vco <= 432 * MHZ
    assert started.field("RCC_PLLCFGR_PLLQ") >= 2
    assert vco / started.field("RCC_PLLCFGR_PLLQ") <= 48 * MHZ
    assert started.field("RCC_CFGR_SW") == 2 and started.field("RCC_CFGR_HPRE") == 0
    assert started.field("FLASH_ACR_LATENCY") == -(-core // (30 * MHZ)) - 1  # at 2.7 to 3.6 V
    power = _power(started)
    assert started.field(f"{power}_VOS") == SCALE_1.get(target.chip.name, 3)
    scaled = started.when(lambda at, _: at == started.chip.addresses[power])
    assert scaled < started.when_set("RCC_CR_PLLON")
    if target.chip.name in OVERDRIVE_ABOVE_HZ:
        above = OVERDRIVE_ABOVE_HZ[target.chip.name]
        wanted = core > above
        assert started.field(f"{power}_ODEN") == started.field(f"{power}_ODSWEN") == wanted
        if wanted:
            steps = ("RCC_CR_PLLON", f"{power}_ODEN", f"{power}_ODSWEN")
            on = [started.when_set(step) for step in steps]
            assert on == sorted(on)
    apb1 = core / APB[started.field("RCC_CFGR_PPRE1")]
    apb2 = core / APB[started.field("RCC_CFGR_PPRE2")]
    assert target.uart is not None
    usart = apb2 if target.uart.name in ("USART1", "USART6") else apb1
    return {"core": core, "source": 16 * MHZ, "apb1": apb1, "apb2": apb2, "usart": usart}


FAMILY = Family(("stm32f4", "stm32f7"), follows, clocks)

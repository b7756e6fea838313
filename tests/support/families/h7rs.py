"""STM32H7RS: RM0477, PWR (LDO, voltage scale 0), RCC (PLL1), FLASH (wait states)."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (
        ("RCC_CR_HSION", "RCC_CR_HSIRDY"),
        *((f"RCC_CR_PLL{i}ON", f"RCC_CR_PLL{i}RDY") for i in (1, 2, 3)),
        ("", "PWR_SR1_ACTVOSRDY"),
        ("PWR_CSR4_VOS", "PWR_CSR4_VOSRDY"),
    )


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLLCKSELR_PLLSRC") == 0  # from the internal 64 MHz
    assert started.field("RCC_CR_HSIDIV") == 0
    into = 64 * MHZ / started.field("RCC_PLLCKSELR_DIVM1")
    vco = into * (started.field("RCC_PLL1DIVR1_DIVN") + 1)
    core = vco / (started.field("RCC_PLL1DIVR1_DIVP") + 1)
    lowest = [1, 2, 4, 8][started.field("RCC_PLLCFGR_PLL1RGE")] * MHZ
    assert 2 * MHZ <= into <= 16 * MHZ and lowest <= into <= 2 * lowest
    assert 400 * MHZ <= vco <= 1600 * MHZ
    for off in ("FRACEN", "VCOSEL", "SSCGEN", "QEN", "REN", "SEN"):
        assert started.field(f"RCC_PLLCFGR_PLL1{off}") == 0
    assert started.field("RCC_PLLCFGR_PLL1PEN") == 1
    assert started.field("RCC_CFGR_SW") == 3 and started.field("RCC_CDCFGR_CPRE") == 0
    axi = core / {0: 1, 8: 2}[started.field("RCC_BMCFGR_BMPRE")]
    assert [started.field(f"RCC_APBCFGR_PPRE{i}") for i in (1, 2, 4, 5)] == [4] * 4
    assert (started.field("FLASH_ACR_LATENCY") + 1) * 40 * MHZ >= axi
    assert started.field("FLASH_ACR_WRHIGHFREQ") == 3
    supply = {f: started.field(f"PWR_CSR2_{f}") for f in ("BYPASS", "LDOEN", "SDEN")}
    assert supply == {"BYPASS": 0, "LDOEN": 1, "SDEN": 0}
    assert started.field("PWR_CSR4_VOS") == 1  # scale 0
    assert started.when_set("PWR_CSR4_VOS") < started.when_set("RCC_CR_PLL1ON")
    assert started.field("RCC_CCIPR2_UART234578SEL") == 3  # the USART's clock is the 64 MHz
    return {"core": core, "source": 64 * MHZ, "axi": axi, "apb": axi / 2, "usart": 64 * MHZ}


FAMILY = Family(
    ("stm32h7rs",),
    follows,
    clocks,
    first=lambda _: {"PWR_CSR2": 0x6},  # as after power-on: both regulators, not yet confirmed
    prescaler="RCC_BMCFGR_BMPRE",
)

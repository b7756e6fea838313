"""STM32N6: RM0486, RCC (PLL1, IC1, IC2). There is no flash, and the supply stays as it is."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board


def follows(target: Board) -> Follows:
    return (
        ("RCC_CSR_HSIONS", "RCC_SR_HSIRDY"),
        ("RCC_CSR_PLL1ONS", "RCC_SR_PLL1RDY"),
        ("RCC_CFGR1_SYSSW", "RCC_CFGR1_SYSSWS"),
        ("", "PWR_VOSCR_ACTVOSRDY"),
    )


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    assert started.field("RCC_PLL1CFGR1_PLL1SEL") == 0  # from the internal 64 MHz
    assert started.field("RCC_HSICFGR_HSIDIV") == 0
    assert started.field("RCC_PLL1CFGR1_PLL1BYP") == 0
    into = 64 * MHZ / started.field("RCC_PLL1CFGR1_PLL1DIVM")
    vco = into * started.field("RCC_PLL1CFGR1_PLL1DIVN")
    assert 5 * MHZ <= into <= 50 * MHZ and 800 * MHZ <= vco <= 3200 * MHZ
    assert started.field("RCC_PLL1CFGR2_PLL1DIVNFRAC") == 0
    assert started.field("RCC_PLL1CFGR3_PLL1MODDSEN") == 0
    for on in ("MODSSDIS", "MODSSRST", "PDIVEN", "PDIV1", "PDIV2"):
        assert started.field(f"RCC_PLL1CFGR3_PLL1{on}") == 1
    assert started.field("RCC_CFGR1_CPUSW") == 3 and started.field("RCC_CFGR1_SYSSW") == 3
    for number in (1, 2, 6, 11):  # of PLL1, on before they are switched to
        assert started.field(f"RCC_IC{number}CFGR_IC{number}SEL") == 0
        assert started.field(f"RCC_DIVENSR_IC{number}ENS") == 1
    assert started.when_set("RCC_DIVENSR_IC1ENS") < started.when_set("RCC_CFGR1_CPUSW")
    core = vco / (started.field("RCC_IC1CFGR_IC1INT") + 1)
    assert core <= 600 * MHZ  # voltage scale 1
    axi = vco / (started.field("RCC_IC2CFGR_IC2INT") + 1)
    ahb = axi / 2 ** started.field("RCC_CFGR2_HPRE")
    assert axi <= 400 * MHZ and ahb <= 200 * MHZ
    assert [started.field(f"RCC_CFGR2_PPRE{i}") for i in (1, 2, 4, 5)] == [0] * 4
    assert started.field("RCC_MEMENR_AXISRAM1EN")
    assert started.field("RCC_CCIPR13_USART1SEL") == 6  # the USART's clock is the 64 MHz
    apb = {f"apb{i}": ahb for i in (1, 2, 4)}
    return {"core": core, "source": 64 * MHZ, "axi": axi, "ahb": ahb, **apb, "usart": 64 * MHZ}


FAMILY = Family(
    ("stm32n6",), follows, clocks, switch=("RCC_CFGR1_CPUSW", "RCC_CFGR1_CPUSWS"), prescaler=""
)

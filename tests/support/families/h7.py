"""STM32H7: RM0433 and RM0455, 8.7, 4.3.8 and 6.8; RM0468 and RM0399 likewise."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.families.family import MHZ, Family, Follows, Started
from toolchain.boards import Board

REVISION_V = 0x2003_0450
WAITS_TO_MHZ = {
    "stm32h723": (70, 140, 210, 275),
    "stm32h743": (70, 140, 210, 225, 240),
    "stm32h755": (70, 140, 210, 225),
    "stm32h7a3": (44, 88, 132, 176, 220, 264, 280),
}
"""The highest clock of AXI with 0, 1, ... wait states, in the voltage scale of the board."""
VCO_MOST_MHZ = {"stm32h723": 836, "stm32h743": 960, "stm32h755": 836, "stm32h7a3": 560}


def _smaller(target: Board) -> bool:
    return target.chip.name.startswith(("stm32h7a3", "stm32h7b"))


def _has_scale_0_at_once(target: Board) -> bool:
    return target.chip.name == "stm32h723"


def _has_smps(target: Board) -> bool:
    return target.chip.name in ("stm32h7a3", "stm32h755")


def _first(target: Board) -> Mapping[str, int]:
    if _smaller(target):
        return {}
    if _has_scale_0_at_once(target):
        return {"SYSCFG_UR18": 1, "PWR_D3CR": 0x4000}
    return {"DBGMCU_IDCODE": REVISION_V}


def follows(target: Board) -> Follows:
    return (
        ("RCC_CR_HSION", "RCC_CR_HSIRDY"),
        *((f"RCC_CR_PLL{i}ON", f"RCC_CR_PLL{i}RDY") for i in (1, 2, 3)),
        ("", "PWR_CSR1_ACTVOSRDY"),
        ("", "PWR_SRDCR_VOSRDY" if _smaller(target) else "PWR_D3CR_VOSRDY"),
    )


def clocks(started: Started, target: Board) -> Mapping[str, float]:
    smaller = _smaller(target)
    assert started.field("RCC_PLLCKSELR_PLLSRC") == 0  # from the internal 64 MHz
    assert started.field("RCC_CR_HSIDIV") == 0
    into = 64 * MHZ / started.field("RCC_PLLCKSELR_DIVM1")
    vco = into * (started.field("RCC_PLL1DIVR_N1") + 1)
    core = vco / (started.field("RCC_PLL1DIVR_P1") + 1)
    assert 2 * MHZ <= into <= 16 * MHZ
    lowest = [1, 2, 4, 8][started.field("RCC_PLLCFGR_PLL1RGE")] * MHZ
    assert lowest <= into <= 2 * lowest
    most = 836 if core <= 400 * MHZ and not smaller else VCO_MOST_MHZ[target.chip.name]
    assert 192 * MHZ <= vco <= most * MHZ
    assert started.field("RCC_PLLCFGR_PLL1VCOSEL") == started.field("RCC_PLLCFGR_PLL1FRACEN") == 0
    assert started.field("RCC_PLLCFGR_DIVP1EN") == 1
    first, second, third = (
        ("CDCFGR1", "CDCFGR2", "SRDCFGR") if smaller else ("D1CFGR", "D2CFGR", "D3CFGR")
    )
    axi = core / {0: 1, 8: 2}[started.field(f"RCC_{first}_HPRE")]
    assert started.field(f"RCC_{first}_{'CDCPRE' if smaller else 'D1CPRE'}") == 0
    domains = ("CD", "CD", "SRD") if smaller else ("D1", "D2", "D3")
    apb_fields = (
        f"RCC_{first}_{domains[0]}PPRE",
        f"RCC_{second}_{domains[1]}PPRE1",
        f"RCC_{second}_{domains[1]}PPRE2",
        f"RCC_{third}_{domains[2]}PPRE",
    )
    assert all(started.field(field) == 4 for field in apb_fields)
    rows = WAITS_TO_MHZ[target.chip.name]
    assert rows[started.field("FLASH_ACR_LATENCY")] * MHZ >= axi
    at_once, smps = _has_scale_0_at_once(target), _has_smps(target)
    assert started.field("FLASH_ACR_WRHIGHFREQ") == (3 if smaller or at_once else 2)
    supply = {f: started.field(f"PWR_CR3_{f}") for f in ("BYPASS", "LDOEN")}
    assert supply == {"BYPASS": 0, "LDOEN": int(not smps)}
    assert started.field("PWR_CR3_SMPSEN" if smps else "PWR_CR3_SCUEN") == smps
    scale = "PWR_SRDCR_VOS" if smaller else "PWR_D3CR_VOS"
    assert started.field(scale) == (0 if at_once else 3)
    at, mask = started.chip.fields[scale]
    scaled = started.when(
        lambda address, value: address == at and value & mask == (0 if at_once else mask)
    )
    assert scaled < started.when_set("RCC_CR_PLL1ON")
    selected = "RCC_CDCCIP2R_USART234578SEL" if smaller else "RCC_D2CCIP2R_USART28SEL"
    assert started.field(selected) == 3  # the USART's clock is the 64 MHz
    if smps and not smaller:
        assert core <= 400 * MHZ  # in scale 1
    elif core > 400 * MHZ and not at_once:
        steps = ("PWR_D3CR_VOS", "RCC_APB4ENR_SYSCFGEN", "SYSCFG_PWRCR_ODEN", "RCC_CR_PLL1ON")
        on = [started.when_set(step) for step in steps]
        assert on == sorted(on)
    return {"core": core, "source": 64 * MHZ, "axi": axi, "apb": axi / 2, "usart": 64 * MHZ}


FAMILY = Family(
    ("stm32h7",),
    follows,
    clocks,
    first=_first,
    prescaler=r"RCC_(D1|CD)CFGR1?_HPRE",
)

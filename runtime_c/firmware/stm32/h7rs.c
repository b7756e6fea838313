/* SPDX-License-Identifier: Apache-2.0 */
/* STM32H7R and H7S (RM0477): full speed from the internal 64 MHz oscillator, so that no crystal or solder
 * bridge matters; both caches. The UART runs on that oscillator directly. */
#include "registers_h7rs.h"
#include "thimble_board.h"
#include "thimble_firmware.h"
#include "thimble_stm32.h"

#define SUPPLY_FIELDS                                                                                        \
    (PWR_CSR2_BYPASS | PWR_CSR2_LDOEN | PWR_CSR2_SDEN | PWR_CSR2_SMPSEXTHP | PWR_CSR2_SDHILEVEL)

#define FLASH_TIMING (THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_WRHIGHFREQ)

/* 64 MHz / M is 2 to 4, 4 to 8 or 8 to 16 MHz. */
#define INPUT_RANGE (THIMBLE_PLL_M <= 8u ? 3u : THIMBLE_PLL_M <= 16u ? 2u : 1u)

#define ON_HSI 0u
#define ON_PLL (RCC_CFGR_SW_1 | RCC_CFGR_SW_0)
#define IS_ON_PLL (RCC_CFGR_SWS_1 | RCC_CFGR_SWS_0)

/* Onto the internal oscillator, undivided and as it was calibrated, with nothing else running: ST's code in
 * system memory runs before the firmware. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = ON_HSI;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, 0);
    THIMBLE_REGISTER(RCC_CR) &=
        ~(RCC_CR_HSEON | RCC_CR_CSION | RCC_CR_HSI48ON | RCC_CR_PLL1ON | RCC_CR_PLL2ON | RCC_CR_PLL3ON);
    thimble_wait_clear(RCC_CR, RCC_CR_PLL1RDY | RCC_CR_PLL2RDY | RCC_CR_PLL3RDY);
    THIMBLE_REGISTER(RCC_CR) &= ~RCC_CR_HSIDIV;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    thimble_replace(RCC_HSICFGR, RCC_HSICFGR_HSITRIM, RCC_HSICFGR_HSITRIM_6);
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

/* The supply must be confirmed once after power-on before VOS may change; then scale 0. */
static void power_up(void)
{
    thimble_replace(PWR_CSR2, SUPPLY_FIELDS, THIMBLE_PWR_SUPPLY);
    thimble_wait_set(PWR_SR1, PWR_SR1_ACTVOSRDY);
    THIMBLE_REGISTER(PWR_CSR4) |= PWR_CSR4_VOS;
    thimble_wait_set(PWR_CSR4, PWR_CSR4_VOSRDY);
}

static void pll_up(void)
{
    thimble_replace(RCC_PLLCKSELR, RCC_PLLCKSELR_PLLSRC | RCC_PLLCKSELR_DIVM1,
                    THIMBLE_PLL_M << RCC_PLLCKSELR_DIVM1_Pos);
    thimble_replace(RCC_PLLCFGR,
                    RCC_PLLCFGR_PLL1FRACEN | RCC_PLLCFGR_PLL1VCOSEL | RCC_PLLCFGR_PLL1SSCGEN |
                        RCC_PLLCFGR_PLL1RGE | RCC_PLLCFGR_PLL1PEN | RCC_PLLCFGR_PLL1QEN |
                        RCC_PLLCFGR_PLL1REN | RCC_PLLCFGR_PLL1SEN,
                    (INPUT_RANGE << RCC_PLLCFGR_PLL1RGE_Pos) | RCC_PLLCFGR_PLL1PEN); /* wide VCO, P on */
    THIMBLE_REGISTER(RCC_PLL1DIVR1) =
        ((THIMBLE_PLL_N - 1u) << RCC_PLL1DIVR1_DIVN_Pos) | ((THIMBLE_PLL_P - 1u) << RCC_PLL1DIVR1_DIVP_Pos) |
        (1u << RCC_PLL1DIVR1_DIVQ_Pos) | (1u << RCC_PLL1DIVR1_DIVR_Pos); /* Q and R 2, which are off */
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLL1ON;
    thimble_wait_set(RCC_CR, RCC_CR_PLL1RDY);
}

/* AXI and AHB at half of the core's clock, the APBs at half of that. */
static void divide_buses(void)
{
    THIMBLE_REGISTER(RCC_CDCFGR) = 0;
    THIMBLE_REGISTER(RCC_BMCFGR) = RCC_BMCFGR_BMPRE_3;
    THIMBLE_REGISTER(RCC_APBCFGR) =
        RCC_APBCFGR_PPRE1_2 | RCC_APBCFGR_PPRE2_2 | RCC_APBCFGR_PPRE4_2 | RCC_APBCFGR_PPRE5_2;
}

/* RAM has ECC, which is wrong for every word until it is written once. */
static void forget_after_power_on(void)
{
    if ((THIMBLE_REGISTER(RCC_RSR) & (RCC_RSR_PORRSTF | RCC_RSR_BORRSTF)) != 0) {
        thimble_fault_forget();
    }
    THIMBLE_REGISTER(RCC_RSR) |= RCC_RSR_RMVF;
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* a probe reaches the core in its sleep */
    forget_after_power_on();
    settle_clocks();
    power_up();
    pll_up();
    divide_buses();
    THIMBLE_REGISTER(FLASH_ACR) = FLASH_TIMING;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY | FLASH_ACR_WRHIGHFREQ, FLASH_TIMING);
    THIMBLE_REGISTER(RCC_CFGR) = ON_PLL;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, IS_ON_PLL);
    thimble_replace(RCC_CCIPR2, RCC_CCIPR2_UART234578SEL,
                    RCC_CCIPR2_UART234578SEL_1 | RCC_CCIPR2_UART234578SEL_0);
    thimble_mpu_refuse_external();
    thimble_caches_enable();
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR, RCC_CFGR_SWS) != ON_PLL) {
        return 64000000u;
    }
    return 64000000u / thimble_field(RCC_PLLCKSELR, RCC_PLLCKSELR_DIVM1) *
           (thimble_field(RCC_PLL1DIVR1, RCC_PLL1DIVR1_DIVN) + 1u) /
           (thimble_field(RCC_PLL1DIVR1, RCC_PLL1DIVR1_DIVP) + 1u);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* STM32WB (RM0434) and WL (RM0453): full speed of the Cortex-M4 from the internal 16 MHz oscillator. USART1
 * and LPUART1 run on that oscillator directly. The other core is not started. */
#include "registers_wb.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_ICSCR_HSITRIM & ~(RCC_ICSCR_HSITRIM >> 1)) /* the middle of what it takes */

#ifdef THIMBLE_HALF_HCLK2
#define OTHER_PLLS RCC_CR_PLLSAI1ON
#else
#define OTHER_PLLS 0u
#endif

/* First of all: those of full speed do for every clock. The small caches may be emptied only while they are
 * off. */
static void flash_up(void)
{
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES;
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_ICRST | FLASH_ACR_DCRST;
    THIMBLE_REGISTER(FLASH_ACR) =
        THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | FLASH_ACR_DCEN;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

/* Onto the internal oscillator, with no PLL running; the prescalers of what both cores share. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_0;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_0);
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_HSEON | RCC_CR_PLLON | OTHER_PLLS);
    thimble_wait_clear(RCC_CR, RCC_CR_PLLRDY);
    thimble_replace(RCC_ICSCR, RCC_ICSCR_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(RCC_CIER) = 0;
#ifdef THIMBLE_HALF_HCLK2
    THIMBLE_REGISTER(RCC_EXTCFGR) = RCC_EXTCFGR_C2HPRE_3;
    thimble_wait_set(RCC_EXTCFGR, RCC_EXTCFGR_C2HPREF);
#else
    THIMBLE_REGISTER(RCC_EXTCFGR) = 0;
#endif
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* as a probe would: see THIMBLE_NEVER_SLEEPS */
    flash_up();
    settle_clocks();
    thimble_replace(PWR_CR1, PWR_CR1_VOS, PWR_CR1_VOS_0); /* range 1 */
    thimble_wait_clear(PWR_SR2, PWR_SR2_VOSF);
    /* 16 MHz / M into the VCO, x N, / R for the core. */
    THIMBLE_REGISTER(RCC_PLLCFGR) = RCC_PLLCFGR_PLLSRC_1 | ((THIMBLE_PLL_M - 1u) << RCC_PLLCFGR_PLLM_Pos) |
                                    (THIMBLE_PLL_N << RCC_PLLCFGR_PLLN_Pos) |
                                    ((THIMBLE_PLL_P - 1u) << RCC_PLLCFGR_PLLR_Pos) | RCC_PLLCFGR_PLLREN;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS);
    thimble_replace(RCC_CCIPR, RCC_CCIPR_USART1SEL | RCC_CCIPR_LPUART1SEL,
                    RCC_CCIPR_USART1SEL_1 | RCC_CCIPR_LPUART1SEL_1);
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR, RCC_CFGR_SWS) != RCC_CFGR_SW) {
        return 16000000u;
    }
    return 16000000u / (thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLM) + 1u) *
           thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLN) / (thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLR) + 1u);
}

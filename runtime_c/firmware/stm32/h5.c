/* SPDX-License-Identifier: Apache-2.0 */
/* STM32H5 (RM0481, RM0492): full speed from the internal 64 MHz oscillator. USART3 runs on that
 * oscillator directly. TrustZone is off, as the option bytes are delivered; nothing here is Secure. */
#include "registers_h5.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_HSICFGR_HSITRIM & ~(RCC_HSICFGR_HSITRIM >> 1)) /* the middle of what it takes */
#define INTO_HZ (64000000u / THIMBLE_PLL_M)
#define INTO_RANGE (INTO_HZ >= 8000000u ? 3u : INTO_HZ >= 4000000u ? 2u : 1u) /* from 8, 4, 2 MHz */

#ifdef THIMBLE_TWO_PLLS
#define OTHER_PLLS RCC_CR_PLL2ON
#else
#define OTHER_PLLS (RCC_CR_PLL2ON | RCC_CR_PLL3ON)
#endif

/* First of all: those of full speed do for every clock. WRHIGHFREQ is that of more than 168 MHz
 * (inferred: not read from the manual). */
static void flash_up(void)
{
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_WRHIGHFREQ_1 | FLASH_ACR_PRFTEN;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

/* Onto the internal oscillator, undivided, with no PLL running. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR1) &= ~RCC_CFGR1_SW;
    thimble_wait_clear(RCC_CFGR1, RCC_CFGR1_SWS);
    THIMBLE_REGISTER(RCC_CFGR2) = 0;
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_HSEON | RCC_CR_PLL1ON | OTHER_PLLS);
    thimble_wait_clear(RCC_CR, RCC_CR_PLL1RDY);
    THIMBLE_REGISTER(RCC_CR) &= ~RCC_CR_HSIDIV;
    thimble_wait_set(RCC_CR, RCC_CR_HSIDIVF);
    thimble_replace(RCC_HSICFGR, RCC_HSICFGR_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

void thimble_board_init(void)
{
    flash_up();
    settle_clocks();
    THIMBLE_REGISTER(PWR_VOSCR) |= PWR_VOSCR_VOS; /* scale 0 */
    thimble_wait_set(PWR_VOSSR, PWR_VOSSR_VOSRDY);
    /* 64 MHz / M into the VCO, x N, / P for the core. */
    THIMBLE_REGISTER(RCC_PLL1CFGR) = RCC_PLL1CFGR_PLL1SRC_0 | (INTO_RANGE << RCC_PLL1CFGR_PLL1RGE_Pos) |
                                     (THIMBLE_PLL_M << RCC_PLL1CFGR_PLL1M_Pos) | RCC_PLL1CFGR_PLL1PEN;
    THIMBLE_REGISTER(RCC_PLL1DIVR) = (THIMBLE_PLL_N - 1u) | ((THIMBLE_PLL_P - 1u) << RCC_PLL1DIVR_PLL1P_Pos);
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLL1ON;
    thimble_wait_set(RCC_CR, RCC_CR_PLL1RDY);
    THIMBLE_REGISTER(RCC_CFGR1) |= RCC_CFGR1_SW;
    thimble_wait_set(RCC_CFGR1, RCC_CFGR1_SWS);
    thimble_replace(RCC_CCIPR1, RCC_CCIPR1_USART3SEL, RCC_CCIPR1_USART3SEL_0 | RCC_CCIPR1_USART3SEL_1);
    thimble_stm32_icache_enable();
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR1, RCC_CFGR1_SWS) != RCC_CFGR1_SW) {
        return 64000000u;
    }
    return 64000000u / thimble_field(RCC_PLL1CFGR, RCC_PLL1CFGR_PLL1M) *
           (thimble_field(RCC_PLL1DIVR, RCC_PLL1DIVR_PLL1N) + 1u) /
           (thimble_field(RCC_PLL1DIVR, RCC_PLL1DIVR_PLL1P) + 1u);
}

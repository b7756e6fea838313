/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F1 (RM0008, RM0041): the most that the internal 8 MHz oscillator makes, so that no crystal matters. */
#include "registers_f1.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_CR_HSITRIM & ~(RCC_CR_HSITRIM >> 1)) /* the middle of what it takes */

/* Half of the oscillator's clock, x N, for the core. */
#define FACTORS                                                                                              \
    (((THIMBLE_PLL_N - 2u) << RCC_CFGR_PLLMULL_Pos) |                                                        \
     (THIMBLE_APB_CODE(THIMBLE_APB1_DIVIDER) << RCC_CFGR_PPRE1_Pos) |                                        \
     (THIMBLE_APB_CODE(THIMBLE_APB2_DIVIDER) << RCC_CFGR_PPRE2_Pos))

/* Onto the internal oscillator, undivided, with nothing else running. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = 0;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_HSI);
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_CSSON | RCC_CR_HSEON | RCC_CR_PLLON);
    thimble_wait_clear(RCC_CR, RCC_CR_PLLRDY);
    thimble_replace(RCC_CR, RCC_CR_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(RCC_CIR) = 0;
}

/* Prefetch may change below 24 MHz only (RM0008 3.3.3). */
static void flash_up(void)
{
#ifdef THIMBLE_FLASH_NEVER_WAITS
    THIMBLE_REGISTER(FLASH_ACR) = 0; /* no reads in half a cycle, which this clock is too fast for */
#else
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_PRFTBE;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
#endif
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* as a probe would: see THIMBLE_NEVER_SLEEPS */
    settle_clocks();
    flash_up();
    THIMBLE_REGISTER(RCC_CFGR) = FACTORS;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    THIMBLE_REGISTER(RCC_CFGR) = FACTORS | RCC_CFGR_SW_PLL;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL);
}

uint32_t thimble_board_clock_hz(void)
{
    const uint32_t by = thimble_field(RCC_CFGR, RCC_CFGR_PLLMULL) + 2u;
    return thimble_field(RCC_CFGR, RCC_CFGR_SWS) == RCC_CFGR_SW_PLL ? 4000000u * by : 8000000u;
}

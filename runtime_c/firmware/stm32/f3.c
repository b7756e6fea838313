/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F303xD/xE (RM0316): full speed from the internal 8 MHz oscillator. */
#include "registers_f3.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_CR_HSITRIM & ~(RCC_CR_HSITRIM >> 1)) /* the middle of what it takes */

/* The oscillator / M, x N, for the core. */
#define FACTORS                                                                                              \
    (RCC_CFGR_PLLSRC_HSI_PREDIV | ((THIMBLE_PLL_N - 2u) << RCC_CFGR_PLLMUL_Pos) |                            \
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

/* Prefetch may change below 24 MHz only (RM0316 4.2.2). */
static void flash_up(void)
{
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_PRFTBE;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* as a probe would: see THIMBLE_NEVER_SLEEPS */
    settle_clocks();
    flash_up();
    THIMBLE_REGISTER(RCC_CFGR2) = THIMBLE_PLL_M - 1u;
    THIMBLE_REGISTER(RCC_CFGR) = FACTORS;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    THIMBLE_REGISTER(RCC_CFGR) = FACTORS | RCC_CFGR_SW_PLL;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL);
    THIMBLE_REGISTER(RCC_CFGR3) = 0; /* UARTs count bits with their bus: 8 MHz / 69 is 0.6% off */
}

uint32_t thimble_board_clock_hz(void)
{
    const uint32_t into = 8000000u / (thimble_field(RCC_CFGR2, RCC_CFGR2_PREDIV) + 1u);
    return thimble_field(RCC_CFGR, RCC_CFGR_SWS) == RCC_CFGR_SW_PLL
               ? into * (thimble_field(RCC_CFGR, RCC_CFGR_PLLMUL) + 2u)
               : 8000000u;
}

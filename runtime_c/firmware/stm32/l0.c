/* SPDX-License-Identifier: Apache-2.0 */
/* STM32L0 (RM0367) and L1 (RM0038): full speed from the internal 16 MHz oscillator. The UART of an L0 runs on
 * that oscillator directly. */
#include "registers_l0.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_ICSCR_HSITRIM & ~(RCC_ICSCR_HSITRIM >> 1)) /* the middle of what it takes */

/* The field PLLMUL for 3, 4, 6, 8, 12, 16, 24, 32 and 48: 0, 1, 2, ... 8. */
#define MULTIPLIER_CODE                                                                                      \
    ((THIMBLE_PLL_N >= 48u   ? 8u                                                                            \
      : THIMBLE_PLL_N >= 32u ? 7u                                                                            \
      : THIMBLE_PLL_N >= 24u ? 6u                                                                            \
      : THIMBLE_PLL_N >= 16u ? 5u                                                                            \
      : THIMBLE_PLL_N >= 12u ? 4u                                                                            \
      : THIMBLE_PLL_N >= 8u  ? 3u                                                                            \
      : THIMBLE_PLL_N >= 6u  ? 2u                                                                            \
                             : THIMBLE_PLL_N - 3u)                                                            \
     << RCC_CFGR_PLLMUL_Pos)
#define FACTORS (MULTIPLIER_CODE | ((THIMBLE_PLL_P - 1u) << RCC_CFGR_PLLDIV_Pos))

#ifdef THIMBLE_STM32L1
#define NOT_WANTED RCC_CR_CSSON
#define INTERRUPTS RCC_CIR
#else
#define NOT_WANTED RCC_CR_HSIDIVEN
#define INTERRUPTS RCC_CIER
#endif

/* Prefetch and wait states of an L1 need reads of 64 bits (RM0038 3.9.1, FLASH_ACR). */
static void flash_up(void)
{
#ifdef THIMBLE_STM32L1
    THIMBLE_REGISTER(FLASH_ACR) |= FLASH_ACR_ACC64;
    thimble_wait_set(FLASH_ACR, FLASH_ACR_ACC64);
#endif
    thimble_replace(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
    THIMBLE_REGISTER(FLASH_ACR) |= FLASH_ACR_PRFTEN;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

/* A reset leaves range 2, where 16 MHz would need a wait state. */
static void power_up(void)
{
    thimble_clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    thimble_wait_clear(PWR_CSR, PWR_CSR_VOSF);
    thimble_replace(PWR_CR, PWR_CR_VOS, PWR_CR_VOS_0); /* range 1 */
    thimble_wait_clear(PWR_CSR, PWR_CSR_VOSF);
    flash_up();
}

/* Onto the internal oscillator, undivided, with no PLL running. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_HSI;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_HSI);
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_HSEON | RCC_CR_PLLON | NOT_WANTED);
    thimble_wait_clear(RCC_CR, RCC_CR_PLLRDY);
    thimble_replace(RCC_ICSCR, RCC_ICSCR_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(INTERRUPTS) = 0;
}

void thimble_board_init(void)
{
#ifndef THIMBLE_STM32L1
    thimble_clock_enable(RCC_APB2ENR, RCC_APB2ENR_DBGEN); /* an L0 sleeps, and a probe is to reach it */
#endif
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* as a probe would: see THIMBLE_NEVER_SLEEPS */
    power_up();
    settle_clocks();
    /* 16 MHz x N, / P for the core. */
    THIMBLE_REGISTER(RCC_CFGR) = FACTORS | RCC_CFGR_SW_HSI;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    THIMBLE_REGISTER(RCC_CFGR) = FACTORS | RCC_CFGR_SW_PLL;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL);
#ifndef THIMBLE_STM32L1
    thimble_replace(RCC_CCIPR, RCC_CCIPR_USART1SEL | RCC_CCIPR_USART2SEL,
                    RCC_CCIPR_USART1SEL_1 | RCC_CCIPR_USART2SEL_1);
#endif
}

uint32_t thimble_board_clock_hz(void)
{
    const uint32_t code = thimble_field(RCC_CFGR, RCC_CFGR_PLLMUL); /* 3, 4, 6, 8, 12, ... 48 */
    if (thimble_field(RCC_CFGR, RCC_CFGR_SWS) != RCC_CFGR_SW_PLL) {
        return 16000000u;
    }
    return 16000000u * (((code & 1u) == 0 ? 3u : 4u) << (code / 2u)) /
           (thimble_field(RCC_CFGR, RCC_CFGR_PLLDIV) + 1u);
}

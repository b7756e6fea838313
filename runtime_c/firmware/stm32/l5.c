/* SPDX-License-Identifier: Apache-2.0 */
/* STM32L5 (RM0438): full speed from the internal 16 MHz oscillator. LPUART1 runs on that oscillator
 * directly. TrustZone is off, as the option bytes are delivered; nothing here is Secure. */
#include "registers_l5.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_ICSCR_HSITRIM & ~(RCC_ICSCR_HSITRIM >> 1)) /* the middle of what it takes */

/* First of all: those of full speed do for every clock and range. */
static void flash_up(void)
{
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

/* Onto the internal oscillator, with no PLL running. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_0;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_0);
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_HSEON | RCC_CR_PLLON | RCC_CR_PLLSAI1ON | RCC_CR_PLLSAI2ON);
    thimble_wait_clear(RCC_CR, RCC_CR_PLLRDY);
    thimble_replace(RCC_ICSCR, RCC_ICSCR_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

static void power_up(void)
{
    thimble_clock_enable(RCC_APB1ENR1, RCC_APB1ENR1_PWREN);
    THIMBLE_REGISTER(PWR_CR1) &= ~PWR_CR1_VOS; /* range 0 */
    thimble_wait_clear(PWR_SR2, PWR_SR2_VOSF);
#ifdef THIMBLE_VDDIO2
    THIMBLE_REGISTER(PWR_CR2) |= PWR_CR2_IOSV; /* port G has a supply of its own */
#endif
}

void thimble_board_init(void)
{
    flash_up();
    settle_clocks();
    power_up();
    /* 16 MHz / M into the VCO, x N, / R for the core. */
    THIMBLE_REGISTER(RCC_PLLCFGR) = RCC_PLLCFGR_PLLSRC_1 | ((THIMBLE_PLL_M - 1u) << RCC_PLLCFGR_PLLM_Pos) |
                                    (THIMBLE_PLL_N << RCC_PLLCFGR_PLLN_Pos) |
                                    ((THIMBLE_PLL_P / 2u - 1u) << RCC_PLLCFGR_PLLR_Pos) | RCC_PLLCFGR_PLLREN;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    /* As on an L4+: no jump beyond 80 MHz; half speed for at least a microsecond. */
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_HPRE_3 | RCC_CFGR_SW;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS);
    for (volatile uint32_t wait = 0; wait < 200u; wait++) {
    }
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW;
    thimble_replace(RCC_CCIPR1, RCC_CCIPR1_LPUART1SEL, RCC_CCIPR1_LPUART1SEL_1);
    thimble_stm32_icache_enable();
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR, RCC_CFGR_SWS) != RCC_CFGR_SW) {
        return 16000000u;
    }
    return 16000000u / (thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLM) + 1u) *
           thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLN) /
           (2u * thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLR) + 2u);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* STM32G0 (RM0444): full speed from the internal 16 MHz oscillator. The UART runs on that oscillator
 * directly. */
#include "registers_g0.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_ICSCR_HSITRIM & ~(RCC_ICSCR_HSITRIM >> 1)) /* the middle of what it takes */

/* Onto the internal oscillator, undivided, with no PLL running. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_HSISYS;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_HSISYS);
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_HSEON | RCC_CR_PLLON | RCC_CR_HSIDIV);
    thimble_wait_clear(RCC_CR, RCC_CR_PLLRDY);
    thimble_replace(RCC_ICSCR, RCC_ICSCR_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

static void power_up(void)
{
    thimble_clock_enable(RCC_APBENR1, RCC_APBENR1_PWREN);
    thimble_replace(PWR_CR1, PWR_CR1_VOS, PWR_CR1_VOS_0); /* range 1 */
    thimble_wait_clear(PWR_SR2, PWR_SR2_VOSF);
}

/* The cache may be emptied only while it is off. Without DBG_SWEN no probe gets in. */
static void flash_up(void)
{
    thimble_replace(FLASH_ACR, FLASH_ACR_LATENCY | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN,
                    THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_DBG_SWEN);
    THIMBLE_REGISTER(FLASH_ACR) |= FLASH_ACR_ICRST;
    thimble_replace(FLASH_ACR, FLASH_ACR_ICRST, FLASH_ACR_PRFTEN | FLASH_ACR_ICEN);
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

void thimble_board_init(void)
{
    thimble_clock_enable(RCC_APBENR1, RCC_APBENR1_DBGEN); /* of DBG_IDCODE, which HELLO tells */
    settle_clocks();
    power_up();
    /* 16 MHz / M into the VCO, x N, / R for the core. */
    THIMBLE_REGISTER(RCC_PLLCFGR) = RCC_PLLCFGR_PLLSRC_HSI | ((THIMBLE_PLL_M - 1u) << RCC_PLLCFGR_PLLM_Pos) |
                                    (THIMBLE_PLL_N << RCC_PLLCFGR_PLLN_Pos) |
                                    ((THIMBLE_PLL_P - 1u) << RCC_PLLCFGR_PLLR_Pos) | RCC_PLLCFGR_PLLREN;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    flash_up();
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_PLLRCLK;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLLRCLK);
    thimble_replace(RCC_CCIPR, RCC_CCIPR_USART1SEL | RCC_CCIPR_USART2SEL,
                    RCC_CCIPR_USART1SEL_1 | RCC_CCIPR_USART2SEL_1);
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR, RCC_CFGR_SWS) != RCC_CFGR_SW_PLLRCLK) {
        return 16000000u;
    }
    return 16000000u / (thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLM) + 1u) *
           thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLN) / (thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLR) + 1u);
}

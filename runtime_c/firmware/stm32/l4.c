/* SPDX-License-Identifier: Apache-2.0 */
/* STM32L4 (RM0351, RM0394, RM0432) and G4 (RM0440): full speed from the internal 16 MHz oscillator. The UART
 * runs on that oscillator directly. */
#include "registers_l4.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_ICSCR_HSITRIM & ~(RCC_ICSCR_HSITRIM >> 1)) /* the middle of what it takes */

#if defined(THIMBLE_NO_PLLSAI)
#define OTHER_PLLS 0u
#elif defined(THIMBLE_ONE_PLLSAI)
#define OTHER_PLLS RCC_CR_PLLSAI1ON
#else
#define OTHER_PLLS (RCC_CR_PLLSAI1ON | RCC_CR_PLLSAI2ON)
#endif

/* Onto the internal oscillator, with no PLL running. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_HSI;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_HSI);
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_HSEON | RCC_CR_PLLON | OTHER_PLLS);
    thimble_wait_clear(RCC_CR, RCC_CR_PLLRDY);
    thimble_replace(RCC_ICSCR, RCC_ICSCR_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

static void power_up(void)
{
    thimble_clock_enable(RCC_APB1ENR1, RCC_APB1ENR1_PWREN);
    thimble_replace(PWR_CR1, PWR_CR1_VOS, PWR_CR1_VOS_0); /* range 1 */
    thimble_wait_clear(PWR_SR2, PWR_SR2_VOSF);
#ifdef THIMBLE_BOOST_MODE
    THIMBLE_REGISTER(PWR_CR5) &= ~PWR_CR5_R1MODE;
#endif
#ifdef THIMBLE_VDDIO2
    THIMBLE_REGISTER(PWR_CR2) |= PWR_CR2_IOSV; /* port G has a supply of its own */
#endif
}

#ifdef FLASH_ACR_DBG_SWEN
#define ACCESS (THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_DBG_SWEN) /* without it no probe gets in */
#else
#define ACCESS THIMBLE_FLASH_WAIT_STATES
#endif

/* The flash's small caches may be emptied only while they are off. */
static void flash_up(void)
{
    THIMBLE_REGISTER(FLASH_ACR) = ACCESS;
    THIMBLE_REGISTER(FLASH_ACR) = ACCESS | FLASH_ACR_ICRST | FLASH_ACR_DCRST;
    THIMBLE_REGISTER(FLASH_ACR) = ACCESS | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | FLASH_ACR_DCEN;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* as a probe would: see THIMBLE_NEVER_SLEEPS */
    settle_clocks();
    power_up();
    /* 16 MHz / M into the VCO, x N, / R for the core. */
    THIMBLE_REGISTER(RCC_PLLCFGR) = RCC_PLLCFGR_PLLSRC_HSI | ((THIMBLE_PLL_M - 1u) << RCC_PLLCFGR_PLLM_Pos) |
                                    (THIMBLE_PLL_N << RCC_PLLCFGR_PLLN_Pos) |
                                    ((THIMBLE_PLL_P / 2u - 1u) << RCC_PLLCFGR_PLLR_Pos) | RCC_PLLCFGR_PLLREN;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    flash_up();
    /* RM0432 6.2.8: no jump beyond 80 MHz; half speed for at least a microsecond. */
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_HPRE_DIV2 | RCC_CFGR_SW_PLL;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL);
    for (volatile uint32_t wait = 0; wait < 200u; wait++) {
    }
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_PLL;
    thimble_replace(RCC_CCIPR, RCC_CCIPR_USART2SEL | RCC_CCIPR_LPUART1SEL,
                    RCC_CCIPR_USART2SEL_1 | RCC_CCIPR_LPUART1SEL_1);
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR, RCC_CFGR_SWS) != RCC_CFGR_SW_PLL) {
        return 16000000u;
    }
    return 16000000u / (thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLM) + 1u) *
           thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLN) /
           (2u * thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLR) + 2u);
}

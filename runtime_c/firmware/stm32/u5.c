/* SPDX-License-Identifier: Apache-2.0 */
/* STM32U5 (RM0456): full speed from the internal 16 MHz oscillator. USART1 runs on that oscillator
 * directly. TrustZone is off, as the option bytes are delivered; nothing here is Secure. */
#include "registers_u5.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_ICSCR3_HSITRIM & ~(RCC_ICSCR3_HSITRIM >> 1)) /* the middle of what it takes */
#define INTO_HZ (16000000u / THIMBLE_PLL_M)
#define INTO_RANGE (INTO_HZ > 8000000u ? RCC_PLL1CFGR_PLL1RGE : 0u)

/* First of all: 16 MHz need a wait state in the range of a reset; those of full speed do for every clock. */
static void flash_up(void)
{
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_PRFTEN;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

/* Onto the internal oscillator, with no PLL running. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    thimble_replace(RCC_CFGR1, RCC_CFGR1_SW, RCC_CFGR1_SW_0);
    thimble_wait_for(RCC_CFGR1, RCC_CFGR1_SWS, RCC_CFGR1_SWS_0);
    THIMBLE_REGISTER(RCC_CFGR2) = 0;
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_HSEON | RCC_CR_PLL1ON | RCC_CR_PLL2ON | RCC_CR_PLL3ON);
    thimble_wait_clear(RCC_CR, RCC_CR_PLL1RDY);
    thimble_replace(RCC_ICSCR3, RCC_ICSCR3_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

/* Range 1. Above 55 MHz the booster must run, on the clock that the PLL takes, which is therefore chosen
 * while the booster is off. */
static void power_up(void)
{
    thimble_clock_enable(RCC_AHB3ENR, RCC_AHB3ENR_PWREN);
#ifdef THIMBLE_SMPS
    THIMBLE_REGISTER(PWR_CR3) |= PWR_CR3_REGSEL;
    thimble_wait_set(PWR_SVMSR, PWR_SVMSR_REGS);
#endif
    THIMBLE_REGISTER(PWR_VOSR) &= ~PWR_VOSR_BOOSTEN;
    THIMBLE_REGISTER(RCC_PLL1CFGR) = RCC_PLL1CFGR_PLL1SRC_1 | INTO_RANGE |
                                     ((THIMBLE_PLL_M - 1u) << RCC_PLL1CFGR_PLL1M_Pos) | RCC_PLL1CFGR_PLL1REN;
    THIMBLE_REGISTER(PWR_VOSR) |= PWR_VOSR_VOS;
    thimble_wait_set(PWR_VOSR, PWR_VOSR_VOSRDY);
    THIMBLE_REGISTER(PWR_VOSR) |= PWR_VOSR_BOOSTEN;
    thimble_wait_set(PWR_VOSR, PWR_VOSR_BOOSTRDY);
}

void thimble_board_init(void)
{
    flash_up();
    settle_clocks();
    power_up();
    /* 16 MHz / M into the VCO, x N, / R for the core. */
    THIMBLE_REGISTER(RCC_PLL1DIVR) = (THIMBLE_PLL_N - 1u) | ((THIMBLE_PLL_P - 1u) << RCC_PLL1DIVR_PLL1R_Pos);
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLL1ON;
    thimble_wait_set(RCC_CR, RCC_CR_PLL1RDY);
    THIMBLE_REGISTER(RCC_CFGR1) |= RCC_CFGR1_SW;
    thimble_wait_for(RCC_CFGR1, RCC_CFGR1_SWS, RCC_CFGR1_SWS);
    thimble_replace(RCC_CCIPR1, RCC_CCIPR1_USART1SEL, RCC_CCIPR1_USART1SEL_1);
    thimble_stm32_icache_enable();
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR1, RCC_CFGR1_SWS) != RCC_CFGR1_SW) {
        return 16000000u;
    }
    return 16000000u / (thimble_field(RCC_PLL1CFGR, RCC_PLL1CFGR_PLL1M) + 1u) *
           (thimble_field(RCC_PLL1DIVR, RCC_PLL1DIVR_PLL1N) + 1u) /
           (thimble_field(RCC_PLL1DIVR, RCC_PLL1DIVR_PLL1R) + 1u);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* STM32U3 (RM0487): full speed from the internal 96 MHz oscillator, MSIRC0. USART1 runs on the other one, of
 * 16 MHz. TrustZone is off, as the option bytes are delivered; nothing here is Secure. */
#include "registers_u3.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_ICSCR3_HSITRIM & ~(RCC_ICSCR3_HSITRIM >> 1)) /* the middle of what it takes */
#define DIVIDED (THIMBLE_PLL_P == 8u ? 3u : THIMBLE_PLL_P == 4u ? 2u : THIMBLE_PLL_P == 2u ? 1u : 0u)

/* First of all: those of full speed do for every clock. */
static void flash_up(void)
{
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_PRFTEN;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

/* The source of MSIS may be changed while it is off, or while it is ready. */
static void choose_msis(uint32_t made_of)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_MSISON;
    thimble_wait_set(RCC_CR, RCC_CR_MSISRDY);
    thimble_replace(RCC_ICSCR1, RCC_ICSCR1_MSISSEL | RCC_ICSCR1_MSISDIV, RCC_ICSCR1_MSIRGSEL | made_of);
    thimble_wait_set(RCC_CR, RCC_CR_MSISRDY);
}

/* Onto the internal 16 MHz, with MSIS at the 12 MHz of a reset: half of MSIRC1. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    thimble_replace(RCC_CFGR1, RCC_CFGR1_SW, RCC_CFGR1_SW_0);
    thimble_wait_for(RCC_CFGR1, RCC_CFGR1_SWS, RCC_CFGR1_SWS_0);
    THIMBLE_REGISTER(RCC_CFGR2) = 0;
    THIMBLE_REGISTER(RCC_CFGR3) = 0;
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_HSEON | RCC_CR_MSIPLL0EN | RCC_CR_MSIPLL1EN);
    choose_msis(RCC_ICSCR1_MSISSEL | RCC_ICSCR1_MSISDIV_0);
    THIMBLE_REGISTER(RCC_ICSCR2) =
        RCC_ICSCR2_MSITRIM1_5 | RCC_ICSCR2_MSITRIM0_5; /* as they were calibrated */
    thimble_replace(RCC_ICSCR3, RCC_ICSCR3_HSITRIM, UNTRIMMED);
    THIMBLE_REGISTER(RCC_CIER) = 0;
}

/* Above 24 MHz the booster must run, on a clock that is chosen while it is off; MSIS is divided for it by the
 * hardware. Then range 1. */
static void power_up(void)
{
    thimble_clock_enable(RCC_AHB1ENR2, RCC_AHB1ENR2_PWREN);
    THIMBLE_REGISTER(PWR_VOSR) &= ~PWR_VOSR_BOOSTEN;
    thimble_wait_clear(PWR_VOSR, PWR_VOSR_BOOSTRDY);
    THIMBLE_REGISTER(RCC_CFGR4) = RCC_CFGR4_BOOSTSEL_0;
    THIMBLE_REGISTER(PWR_VOSR) |= PWR_VOSR_BOOSTEN;
    thimble_wait_set(PWR_VOSR, PWR_VOSR_BOOSTRDY);
    thimble_replace(PWR_VOSR, PWR_VOSR_R1EN | PWR_VOSR_R2EN, PWR_VOSR_R1EN);
    thimble_wait_set(PWR_VOSR, PWR_VOSR_R1RDY);
}

void thimble_board_init(void)
{
    flash_up();
    settle_clocks();
    power_up();
    choose_msis(DIVIDED << RCC_ICSCR1_MSISDIV_Pos); /* MSIRC0 */
    THIMBLE_REGISTER(RCC_CFGR1) &= ~RCC_CFGR1_SW;
    thimble_wait_clear(RCC_CFGR1, RCC_CFGR1_SWS);
    THIMBLE_REGISTER(RCC_CCIPR1) |= RCC_CCIPR1_USART1SEL;
    thimble_stm32_icache_enable();
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR1, RCC_CFGR1_SWS) != 0) {
        return 16000000u;
    }
    return 96000000u >> thimble_field(RCC_ICSCR1, RCC_ICSCR1_MSISDIV);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* STM32C0 (RM0490): full speed from the internal 48 MHz oscillator, which also runs the UART. */
#include "registers_c0.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

#define UNTRIMMED (RCC_ICSCR_HSITRIM & ~(RCC_ICSCR_HSITRIM >> 1)) /* the middle of what it takes */

/* Onto the internal oscillator, divided as it was. */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = 0; /* the oscillator for the core, whose clock no bus divides */
    thimble_wait_clear(RCC_CFGR, RCC_CFGR_SWS);
    THIMBLE_REGISTER(RCC_CR) &= ~RCC_CR_HSEON;
    thimble_replace(RCC_ICSCR, RCC_ICSCR_HSITRIM, UNTRIMMED); /* as it was calibrated */
    THIMBLE_REGISTER(RCC_CIER) = 0;
    THIMBLE_REGISTER(RCC_CCIPR) &= ~RCC_CCIPR_USART1SEL; /* the bus's clock */
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
    flash_up();
    THIMBLE_REGISTER(RCC_CR) &= ~RCC_CR_HSIDIV;
}

uint32_t thimble_board_clock_hz(void)
{
    return 48000000u >> thimble_field(RCC_CR, RCC_CR_HSIDIV);
}

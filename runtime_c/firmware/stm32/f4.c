/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F405, F407 (RM0090) and F446 (RM0390): full speed from the internal 16 MHz oscillator, so that
 * no crystal or solder bridge matters. */
#include "thimble_board.h"
#include "thimble_stm32.h"

#define FLASH_ACR 0x40023C00u /* RM0090 3.9.1 */
#define FLASH_ACR_PREFETCH (1u << 8)
#define FLASH_ACR_CACHES (3u << 9)
#define PWR_CR 0x40007000u /* RM0390 5.4.1 */
#define PWR_CR_VOS_SCALE_1 (3u << 14)
#define PWR_CR_ODEN (1u << 16)
#define PWR_CR_ODSWEN (1u << 17)
#define PWR_CSR 0x40007004u
#define PWR_CSR_ODRDY (1u << 16)
#define PWR_CSR_ODSWRDY (1u << 17)
#define RCC_CR 0x40023800u /* RM0090 7.3 */
#define RCC_CR_HSION (1u << 0)
#define RCC_CR_HSIRDY (1u << 1)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_PLLCFGR 0x40023804u
#define RCC_CFGR 0x40023808u
#define RCC_CFGR_SW_PLL 2u
#define RCC_CFGR_SWS_PLL (2u << 2)
#define RCC_CFGR_BUSES ((5u << 10) | (4u << 13)) /* APB1 = HCLK / 4, APB2 = HCLK / 2 */
#define RCC_APB1ENR 0x40023840u
#define RCC_APB1ENR_PWREN (1u << 28)

/* 16 MHz / 8 = 2 MHz into the VCO, x N, / 2 for the core, / Q, / R (R only where there is one). */
#define PLL_FACTORS (8u | (THIMBLE_PLL_N << 6) | (THIMBLE_PLL_Q << 24) | (2u << 28))

void thimble_board_init(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    thimble_clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    THIMBLE_REGISTER(PWR_CR) |= PWR_CR_VOS_SCALE_1;
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_BUSES; /* back to the internal oscillator as well */
    THIMBLE_REGISTER(RCC_CR) &= ~RCC_CR_PLLON;
    THIMBLE_REGISTER(RCC_PLLCFGR) = PLL_FACTORS;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
#ifdef THIMBLE_OVERDRIVE
    THIMBLE_REGISTER(PWR_CR) |= PWR_CR_ODEN;
    thimble_wait_set(PWR_CSR, PWR_CSR_ODRDY);
    THIMBLE_REGISTER(PWR_CR) |= PWR_CR_ODSWEN;
    thimble_wait_set(PWR_CSR, PWR_CSR_ODSWRDY);
#endif
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_PREFETCH | FLASH_ACR_CACHES;
    (void)THIMBLE_REGISTER(FLASH_ACR);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_BUSES | RCC_CFGR_SW_PLL;
    thimble_wait_set(RCC_CFGR, RCC_CFGR_SWS_PLL);
}

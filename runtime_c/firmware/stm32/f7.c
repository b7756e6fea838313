/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F746 (RM0385) and F767 (RM0410): 216 MHz from the internal 16 MHz oscillator, so that no crystal
 * or solder bridge matters; over-drive, ART accelerator, both caches. */
#include "thimble_board.h"
#include "thimble_stm32.h"

#define FLASH_ACR 0x40023C00u /* RM0385 3.7.1 */
#define FLASH_ACR_7_WAIT_STATES 7u
#define FLASH_ACR_PREFETCH (1u << 8)
#define FLASH_ACR_ART (1u << 9)
#define PWR_CR1 0x40007000u /* RM0385 4.4.1 */
#define PWR_CR1_VOS_SCALE_1 (3u << 14)
#define PWR_CR1_ODEN (1u << 16)
#define PWR_CR1_ODSWEN (1u << 17)
#define PWR_CSR1 0x40007004u
#define PWR_CSR1_ODRDY (1u << 16)
#define PWR_CSR1_ODSWRDY (1u << 17)
#define RCC_CR 0x40023800u /* RM0385 5.3 */
#define RCC_CR_HSION (1u << 0)
#define RCC_CR_HSIRDY (1u << 1)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_PLLCFGR 0x40023804u
/* 16 MHz / 8 = 2 MHz into the VCO, x 216, / 2 for the core; Q 9 for 48 MHz, R 2 where there is one. */
#define RCC_PLLCFGR_216_MHZ (8u | (216u << 6) | (9u << 24) | (2u << 28))
#define RCC_CFGR 0x40023808u
#define RCC_CFGR_SW_PLL 2u
#define RCC_CFGR_SWS_PLL (2u << 2)
#define RCC_CFGR_BUSES ((5u << 10) | (4u << 13)) /* APB1 = HCLK / 4, APB2 = HCLK / 2 */
#define RCC_APB1ENR 0x40023840u
#define RCC_APB1ENR_PWREN (1u << 28)

void thimble_board_init(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    thimble_clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    THIMBLE_REGISTER(PWR_CR1) |= PWR_CR1_VOS_SCALE_1;
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_BUSES; /* back to the internal oscillator as well */
    THIMBLE_REGISTER(RCC_CR) &= ~RCC_CR_PLLON;
    THIMBLE_REGISTER(RCC_PLLCFGR) = RCC_PLLCFGR_216_MHZ;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    THIMBLE_REGISTER(PWR_CR1) |= PWR_CR1_ODEN;
    thimble_wait_set(PWR_CSR1, PWR_CSR1_ODRDY);
    THIMBLE_REGISTER(PWR_CR1) |= PWR_CR1_ODSWEN;
    thimble_wait_set(PWR_CSR1, PWR_CSR1_ODSWRDY);
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    THIMBLE_REGISTER(FLASH_ACR) = FLASH_ACR_7_WAIT_STATES | FLASH_ACR_PREFETCH | FLASH_ACR_ART;
    (void)THIMBLE_REGISTER(FLASH_ACR);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_BUSES | RCC_CFGR_SW_PLL;
    thimble_wait_set(RCC_CFGR, RCC_CFGR_SWS_PLL);
    thimble_m7_caches_enable();
}

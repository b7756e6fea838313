/* SPDX-License-Identifier: Apache-2.0 */
/* STM32L476 (RM0351) and L4R5 (RM0432): full speed from the internal 16 MHz oscillator. The UART runs
 * on that oscillator directly. */
#include "thimble_board.h"
#include "thimble_stm32.h"

#define FLASH_ACR 0x40022000u /* RM0351 3.7.1 */
#define FLASH_ACR_PREFETCH (1u << 8)
#define FLASH_ACR_CACHES (3u << 9)
#define PWR_CR1 0x40007000u /* RM0351 5.4.1 */
#define PWR_CR1_VOS (3u << 9)
#define PWR_CR1_VOS_RANGE_1 (1u << 9)
#define PWR_CR2 0x40007004u
#define PWR_CR2_IOSV (1u << 9)
#define PWR_SR2 0x40007014u
#define PWR_SR2_VOSF (1u << 10)
#define PWR_CR5 0x40007080u /* RM0432 5.4.5 */
#define PWR_CR5_R1MODE (1u << 8)
#define RCC_CR 0x40021000u /* RM0351 6.4 */
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_CFGR 0x40021008u
#define RCC_CFGR_SW_HSI 1u
#define RCC_CFGR_SWS (3u << 2)
#define RCC_CFGR_SWS_HSI (1u << 2)
#define RCC_CFGR_SW_PLL 3u
#define RCC_CFGR_SWS_PLL (3u << 2)
#define RCC_CFGR_HPRE_HALF (8u << 4)
#define RCC_PLLCFGR 0x4002100Cu
#define RCC_PLLCFGR_HSI 2u
#define RCC_PLLCFGR_REN (1u << 24) /* R output on, / 2; M is 1: 16 MHz into the VCO */
#define RCC_APB1ENR1 0x40021058u
#define RCC_APB1ENR1_PWREN (1u << 28)
#define RCC_CCIPR 0x40021088u
#define RCC_CCIPR_USART2_HSI (2u << 2)
#define RCC_CCIPR_LPUART1_HSI (2u << 10)

void thimble_board_init(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_HSI;
    while ((THIMBLE_REGISTER(RCC_CFGR) & RCC_CFGR_SWS) != RCC_CFGR_SWS_HSI) {
    }
    THIMBLE_REGISTER(RCC_CR) &= ~RCC_CR_PLLON;
    thimble_clock_enable(RCC_APB1ENR1, RCC_APB1ENR1_PWREN);
    thimble_replace(PWR_CR1, PWR_CR1_VOS, PWR_CR1_VOS_RANGE_1);
    while ((THIMBLE_REGISTER(PWR_SR2) & PWR_SR2_VOSF) != 0) {
    }
#ifdef THIMBLE_BOOST_MODE
    THIMBLE_REGISTER(PWR_CR5) &= ~PWR_CR5_R1MODE;
#endif
#ifdef THIMBLE_VDDIO2
    THIMBLE_REGISTER(PWR_CR2) |= PWR_CR2_IOSV; /* port G has a supply of its own */
#endif
    THIMBLE_REGISTER(RCC_PLLCFGR) = RCC_PLLCFGR_HSI | (THIMBLE_PLL_N << 8) | RCC_PLLCFGR_REN;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_WAIT_STATES | FLASH_ACR_PREFETCH | FLASH_ACR_CACHES;
    (void)THIMBLE_REGISTER(FLASH_ACR);
    /* RM0432 6.2.8: no jump beyond 80 MHz; half speed for at least a microsecond. */
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_HPRE_HALF | RCC_CFGR_SW_PLL;
    thimble_wait_set(RCC_CFGR, RCC_CFGR_SWS_PLL);
    for (volatile uint32_t wait = 0; wait < 200u; wait++) {
    }
    THIMBLE_REGISTER(RCC_CFGR) = RCC_CFGR_SW_PLL;
    thimble_replace(RCC_CCIPR, RCC_CCIPR_USART2_HSI | RCC_CCIPR_LPUART1_HSI | (1u << 2) | (1u << 10),
                    RCC_CCIPR_USART2_HSI | RCC_CCIPR_LPUART1_HSI);
}

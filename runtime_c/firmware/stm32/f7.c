/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F746 (RM0385) and F767 (RM0410): 216 MHz from the internal 16 MHz oscillator, so that no crystal
 * or solder bridge matters; over-drive, ART accelerator, both caches. */
#include "registers_f7.h"
#include "thimble_board.h"
#include "thimble_stm32.h"

/* The oscillator's 16 MHz / M into the VCO, x N, / P for the core. Q makes the 48 MHz that nothing here uses,
 * or less. */
#define VCO_MHZ (16u * THIMBLE_PLL_N / THIMBLE_PLL_M)
#define PLL_Q ((VCO_MHZ + 47u) / 48u)
#define PLL_FACTORS                                                                                          \
    ((THIMBLE_PLL_M << RCC_PLLCFGR_PLLM_Pos) | (THIMBLE_PLL_N << RCC_PLLCFGR_PLLN_Pos) |                     \
     ((THIMBLE_PLL_P / 2u - 1u) << RCC_PLLCFGR_PLLP_Pos) |                                                   \
     ((PLL_Q < 2u ? 2u : PLL_Q) << RCC_PLLCFGR_PLLQ_Pos))
#define PLL_FIELDS                                                                                           \
    (RCC_PLLCFGR_PLLSRC | RCC_PLLCFGR_PLLM | RCC_PLLCFGR_PLLN | RCC_PLLCFGR_PLLP | RCC_PLLCFGR_PLLQ)
#define BUSES                                                                                                \
    ((THIMBLE_APB_CODE(THIMBLE_APB1_DIVIDER) << RCC_CFGR_PPRE1_Pos) |                                        \
     (THIMBLE_APB_CODE(THIMBLE_APB2_DIVIDER) << RCC_CFGR_PPRE2_Pos))

/* Onto the internal oscillator, with nothing else running, whatever a boot loader left: ST's of the F072
 * starts firmware with the oscillator trimmed by 8 % ("STM32F072 bootloader limitation", community.st.com).
 */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = 0;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_HSI);
    THIMBLE_REGISTER(RCC_CR) &=
        ~(RCC_CR_CSSON | RCC_CR_HSEON | RCC_CR_PLLON | RCC_CR_PLLI2SON | RCC_CR_PLLSAION);
    thimble_wait_clear(RCC_CR, RCC_CR_PLLRDY);
    thimble_replace(RCC_CR, RCC_CR_HSITRIM, RCC_CR_HSITRIM_4); /* untrimmed: as it was calibrated */
    THIMBLE_REGISTER(RCC_CIR) = 0;
}

static void power_up(void)
{
    thimble_clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    THIMBLE_REGISTER(PWR_CR1) |= PWR_CR1_VOS; /* scale 1, while the PLL is off; it takes hold with the PLL */
    thimble_replace(RCC_PLLCFGR, PLL_FIELDS, PLL_FACTORS);
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
    thimble_wait_set(PWR_CSR1, PWR_CSR1_VOSRDY);
    THIMBLE_REGISTER(PWR_CR1) |= PWR_CR1_ODEN;
    thimble_wait_set(PWR_CSR1, PWR_CSR1_ODRDY);
    THIMBLE_REGISTER(PWR_CR1) |= PWR_CR1_ODSWEN;
    thimble_wait_set(PWR_CSR1, PWR_CSR1_ODSWRDY);
}

/* ART may be emptied only while it is off. */
static void flash_up(void)
{
    THIMBLE_REGISTER(FLASH_ACR) = FLASH_ACR_LATENCY_7WS;
    THIMBLE_REGISTER(FLASH_ACR) = FLASH_ACR_LATENCY_7WS | FLASH_ACR_ARTRST;
    THIMBLE_REGISTER(FLASH_ACR) = FLASH_ACR_LATENCY_7WS | FLASH_ACR_PRFTEN | FLASH_ACR_ARTEN;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, FLASH_ACR_LATENCY_7WS);
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* a probe reaches the core in its sleep */
    settle_clocks();
    power_up();
    flash_up();
    THIMBLE_REGISTER(RCC_CFGR) = BUSES;
    THIMBLE_REGISTER(RCC_CFGR) = BUSES | RCC_CFGR_SW_PLL;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL);
    /* The USARTs run on their bus's clock; the ROM boot loader chooses another. */
    THIMBLE_REGISTER(RCC_DCKCFGR2) &=
        ~(RCC_DCKCFGR2_USART1SEL | RCC_DCKCFGR2_USART2SEL | RCC_DCKCFGR2_USART3SEL);
    thimble_mpu_refuse_external();
    thimble_caches_enable();
}

uint32_t thimble_board_clock_hz(void)
{
    if (thimble_field(RCC_CFGR, RCC_CFGR_SWS) != RCC_CFGR_SW_PLL) {
        return 16000000u;
    }
    return 16000000u / thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLM) *
           thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLN) /
           (2u * thimble_field(RCC_PLLCFGR, RCC_PLLCFGR_PLLP) + 2u);
}

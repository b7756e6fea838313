/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F4 (RM0090, RM0368, RM0383, RM0390) and F2 (RM0033): full speed from the internal 16 MHz oscillator,
 * so that no crystal or solder bridge matters. */
#include "registers_f4.h"
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

/* The highest there is: all bits set but on an F401, where scale 1 is reserved. */
#ifdef THIMBLE_PWR_VOS
#define VOLTAGE_SCALE (THIMBLE_PWR_VOS << 14)
#else
#define VOLTAGE_SCALE PWR_CR_VOS
#endif

#define REVISION_A_ID 0x411u /* what an F407 of revision A says it is: an F2 (ST ES0182) */

/* Onto the internal oscillator, with nothing else running, whatever a boot loader left: ST's of the F072
 * starts firmware with the oscillator trimmed by 8 % ("STM32F072 bootloader limitation", community.st.com).
 */
static void settle_clocks(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) = 0;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_HSI);
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_CSSON | RCC_CR_HSEON | RCC_CR_PLLON | RCC_CR_PLLI2SON);
    thimble_wait_clear(RCC_CR, RCC_CR_PLLRDY);
    thimble_replace(RCC_CR, RCC_CR_HSITRIM, RCC_CR_HSITRIM_4); /* untrimmed: as it was calibrated */
    THIMBLE_REGISTER(RCC_CIR) = 0;
}

static void pll_up(void)
{
    thimble_replace(RCC_PLLCFGR, PLL_FIELDS, PLL_FACTORS);
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLLON;
    thimble_wait_set(RCC_CR, RCC_CR_PLLRDY);
}

#ifdef THIMBLE_ONE_VOLTAGE
static void power_up(void)
{
    pll_up();
}

static int32_t can_prefetch(void)
{
    return 1;
}
#else
static void power_up(void)
{
    thimble_clock_enable(RCC_APB1ENR, RCC_APB1ENR_PWREN);
    thimble_replace(PWR_CR, PWR_CR_VOS, VOLTAGE_SCALE); /* while the PLL is off; it takes hold with the PLL */
    pll_up();
    thimble_wait_set(PWR_CSR, PWR_CSR_VOSRDY);
#ifdef THIMBLE_OVERDRIVE
    THIMBLE_REGISTER(PWR_CR) |= PWR_CR_ODEN;
    thimble_wait_set(PWR_CSR, PWR_CSR_ODRDY);
    THIMBLE_REGISTER(PWR_CR) |= PWR_CR_ODSWEN;
    thimble_wait_set(PWR_CSR, PWR_CSR_ODSWRDY);
#endif
}

static int32_t can_prefetch(void)
{
    return (THIMBLE_REGISTER(DBGMCU_IDCODE) & DBGMCU_IDCODE_DEV_ID) != REVISION_A_ID;
}
#endif

/* The flash's small caches may be emptied only while they are off. */
static void flash_up(void)
{
    uint32_t acr = THIMBLE_FLASH_WAIT_STATES;
    THIMBLE_REGISTER(FLASH_ACR) = acr;
    THIMBLE_REGISTER(FLASH_ACR) = acr | FLASH_ACR_ICRST | FLASH_ACR_DCRST;
    acr |= FLASH_ACR_ICEN | FLASH_ACR_DCEN;
    if (can_prefetch() != 0) {
        acr |= FLASH_ACR_PRFTEN;
    }
    THIMBLE_REGISTER(FLASH_ACR) = acr;
    thimble_wait_for(FLASH_ACR, FLASH_ACR_LATENCY, THIMBLE_FLASH_WAIT_STATES);
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(DBGMCU_CR) |= DBGMCU_CR_DBG_SLEEP; /* as a probe would: see THIMBLE_NEVER_SLEEPS */
    settle_clocks();
    power_up();
    flash_up();
    THIMBLE_REGISTER(RCC_CFGR) = BUSES;
    THIMBLE_REGISTER(RCC_CFGR) = BUSES | RCC_CFGR_SW_PLL;
    thimble_wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL);
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

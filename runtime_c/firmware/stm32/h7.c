/* SPDX-License-Identifier: Apache-2.0 */
/* STM32H743 (RM0433) and H7A3 (RM0455): full speed from the internal 64 MHz oscillator, so that no
 * crystal or solder bridge matters; both caches. The UART runs on that oscillator directly. */
#include "thimble_board.h"
#include "thimble_stm32.h"

#define FLASH_ACR 0x52002000u /* RM0433 4.9.1, RM0455 4.9.1: LATENCY, WRHIGHFREQ */
#define PWR_CSR1 0x58024804u  /* RM0433 6.8, RM0455 6.8 */
#define PWR_CSR1_ACTVOSRDY (1u << 13)
#define PWR_CR3 0x5802480Cu
#define PWR_CR3_BYPASS_LDO_SMPS 7u
#define PWR_D3CR 0x58024818u /* SRDCR on the H7A3 */
#define PWR_D3CR_VOS (3u << 14)
#define PWR_D3CR_VOSRDY (1u << 13)
#define RCC_CR 0x58024400u /* RM0433 8.7, RM0455 8.7 */
#define RCC_CR_HSION (1u << 0)
#define RCC_CR_HSIRDY (1u << 2)
#define RCC_CR_HSIDIV (3u << 3)
#define RCC_CR_PLL1ON (1u << 24)
#define RCC_CR_PLL1RDY (1u << 25)
#define RCC_CFGR 0x58024410u
#define RCC_CFGR_SW 7u
#define RCC_CFGR_SW_PLL1 3u
#define RCC_CFGR_SWS_PLL1 (3u << 3)
#define RCC_D1CFGR 0x58024418u
#define RCC_D2CFGR 0x5802441Cu
#define RCC_D2CFGR_APBS_HALF ((4u << 4) | (4u << 8))
#define RCC_D3CFGR 0x58024420u
#define RCC_D3CFGR_APB_HALF (4u << 4)
#define RCC_PLLCKSELR 0x58024428u
#define RCC_PLLCKSELR_PLL1 0x3F3u
#define RCC_PLLCKSELR_HSI_DIV_4 (4u << 4) /* 16 MHz into the VCO */
#define RCC_PLLCFGR 0x5802442Cu
#define RCC_PLLCFGR_PLL1 ((7u << 16) | 0xFu)
#define RCC_PLLCFGR_8_16_MHZ_P (0xCu | (1u << 16)) /* input range, wide VCO, P output on */
#define RCC_PLL1DIVR 0x58024430u
#define RCC_PLL1DIVR_P2_Q4_R2 ((1u << 9) | (3u << 16) | (1u << 24))
#define RCC_D2CCIP2R 0x58024454u
#define RCC_D2CCIP2R_USART234578 7u
#define RCC_D2CCIP2R_USART234578_HSI 3u

#ifdef THIMBLE_H7A3
/* RM0455 6.8.9: 11 is scale 0. 280 MHz on every bus but the APBs. */
#define VOS_TARGET (3u << 14)
#define D1CFGR_BUSES (4u << 4)
#else
/* RM0433 6.8.6: 11 is scale 1; SYSCFG_PWRCR.ODEN makes it scale 0, from revision V on. */
#define VOS_TARGET (3u << 14)
#define D1CFGR_BUSES (8u | (4u << 4)) /* AXI and AHB half of the core's clock */
#define RCC_APB4ENR 0x580244F4u
#define RCC_APB4ENR_SYSCFGEN (1u << 1)
#define SYSCFG_PWRCR 0x58000404u /* RM0433 12.3.4 */
#define SYSCFG_PWRCR_ODEN 1u
#define DBGMCU_IDC 0x5C001000u /* RM0433 60.5.8: revision in the upper half */
#define REVISION_V 0x2003u
#endif

static void power_up(void)
{
    /* The supply must be confirmed once after power-on before VOS may change. */
    thimble_replace(PWR_CR3, PWR_CR3_BYPASS_LDO_SMPS, THIMBLE_PWR_SUPPLY);
    thimble_wait_set(PWR_CSR1, PWR_CSR1_ACTVOSRDY);
    thimble_replace(PWR_D3CR, PWR_D3CR_VOS, VOS_TARGET);
    thimble_wait_set(PWR_D3CR, PWR_D3CR_VOSRDY);
}

/* The multiplier of 16 MHz to twice the core's clock. */
static uint32_t pll_multiplier(void)
{
#ifdef THIMBLE_H7A3
    return 35u; /* 560 MHz */
#else
    if (THIMBLE_REGISTER(DBGMCU_IDC) >> 16 < REVISION_V) {
        return 50u; /* 800 MHz: revision Y has no scale 0, and stops at 400 MHz */
    }
    thimble_clock_enable(RCC_APB4ENR, RCC_APB4ENR_SYSCFGEN);
    THIMBLE_REGISTER(SYSCFG_PWRCR) |= SYSCFG_PWRCR_ODEN;
    thimble_wait_set(PWR_D3CR, PWR_D3CR_VOSRDY);
    return 60u; /* 960 MHz */
#endif
}

void thimble_board_init(void)
{
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_HSION;
    thimble_wait_set(RCC_CR, RCC_CR_HSIRDY);
    THIMBLE_REGISTER(RCC_CFGR) &= ~RCC_CFGR_SW;
    THIMBLE_REGISTER(RCC_CR) &= ~(RCC_CR_PLL1ON | RCC_CR_HSIDIV);
    power_up();
    const uint32_t multiplier = pll_multiplier();
    thimble_replace(RCC_PLLCKSELR, RCC_PLLCKSELR_PLL1, RCC_PLLCKSELR_HSI_DIV_4);
    thimble_replace(RCC_PLLCFGR, RCC_PLLCFGR_PLL1, RCC_PLLCFGR_8_16_MHZ_P);
    THIMBLE_REGISTER(RCC_PLL1DIVR) = (multiplier - 1u) | RCC_PLL1DIVR_P2_Q4_R2;
    THIMBLE_REGISTER(RCC_CR) |= RCC_CR_PLL1ON;
    thimble_wait_set(RCC_CR, RCC_CR_PLL1RDY);
    THIMBLE_REGISTER(RCC_D1CFGR) = D1CFGR_BUSES;
    THIMBLE_REGISTER(RCC_D2CFGR) = RCC_D2CFGR_APBS_HALF;
    THIMBLE_REGISTER(RCC_D3CFGR) = RCC_D3CFGR_APB_HALF;
    THIMBLE_REGISTER(FLASH_ACR) = THIMBLE_FLASH_ACR;
    (void)THIMBLE_REGISTER(FLASH_ACR);
    thimble_replace(RCC_CFGR, RCC_CFGR_SW, RCC_CFGR_SW_PLL1);
    thimble_wait_set(RCC_CFGR, RCC_CFGR_SWS_PLL1);
    thimble_replace(RCC_D2CCIP2R, RCC_D2CCIP2R_USART234578, RCC_D2CCIP2R_USART234578_HSI);
    thimble_m7_caches_enable();
}

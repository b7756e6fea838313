/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32H723 (RM0468), H743 (RM0433), H755 (RM0399) and H7A3 (RM0455) that the start-up uses,
 * by ST's names. Registers that only some of them have are at the end. */
#ifndef REGISTERS_H7_H
#define REGISTERS_H7_H

#define FLASH_ACR 0x52002000u
#define FLASH_ACR_LATENCY 0xFu
#define FLASH_ACR_WRHIGHFREQ (3u << 4)
#define FLASH_ACR_WRHIGHFREQ_0 (1u << 4)
#define FLASH_ACR_WRHIGHFREQ_1 (2u << 4)

#define PWR_CSR1 0x58024804u
#define PWR_CSR1_ACTVOSRDY (1u << 13)
#define PWR_CR3 0x5802480Cu
#define PWR_CR3_BYPASS (1u << 0)
#define PWR_CR3_LDOEN (1u << 1)

#define RCC_CR 0x58024400u
#define RCC_CR_HSION (1u << 0)
#define RCC_CR_HSIRDY (1u << 2)
#define RCC_CR_HSIDIV (3u << 3)
#define RCC_CR_CSION (1u << 7)
#define RCC_CR_HSI48ON (1u << 12)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_PLL1ON (1u << 24)
#define RCC_CR_PLL1RDY (1u << 25)
#define RCC_CR_PLL2ON (1u << 26)
#define RCC_CR_PLL2RDY (1u << 27)
#define RCC_CR_PLL3ON (1u << 28)
#define RCC_CR_PLL3RDY (1u << 29)
#define RCC_HSICFGR 0x58024404u
#define RCC_HSICFGR_HSITRIM (0x7Fu << 24)
#define RCC_HSICFGR_HSITRIM_6 (0x40u << 24)
#define RCC_CFGR 0x58024410u
#define RCC_CFGR_SW_PLL1 3u
#define RCC_CFGR_SWS (7u << 3)
#define RCC_CFGR_SWS_HSI 0u
#define RCC_CFGR_SWS_PLL1 (3u << 3)
#define RCC_PLLCKSELR 0x58024428u
#define RCC_PLLCKSELR_PLLSRC 3u
#define RCC_PLLCKSELR_PLLSRC_HSI 0u
#define RCC_PLLCKSELR_DIVM1 (0x3Fu << 4)
#define RCC_PLLCKSELR_DIVM1_Pos 4u
#define RCC_PLLCFGR 0x5802442Cu
#define RCC_PLLCFGR_PLL1FRACEN (1u << 0)
#define RCC_PLLCFGR_PLL1VCOSEL (1u << 1)
#define RCC_PLLCFGR_PLL1RGE (3u << 2)
#define RCC_PLLCFGR_PLL1RGE_Pos 2u
#define RCC_PLLCFGR_DIVP1EN (1u << 16)
#define RCC_PLLCFGR_DIVQ1EN (1u << 17)
#define RCC_PLLCFGR_DIVR1EN (1u << 18)
#define RCC_PLL1DIVR 0x58024430u
#define RCC_PLL1DIVR_N1_Pos 0u
#define RCC_PLL1DIVR_N1 0x1FFu
#define RCC_PLL1DIVR_P1 (0x7Fu << 9)
#define RCC_PLL1DIVR_P1_Pos 9u
#define RCC_PLL1DIVR_Q1_Pos 16u
#define RCC_PLL1DIVR_R1_Pos 24u
#define RCC_CIER 0x58024460u
#define RCC_RSR_RMVF (1u << 16)
#define RCC_RSR_BORRSTF (1u << 21)
#define RCC_RSR_PORRSTF (1u << 23)

#define DBGMCU_IDCODE 0x5C001000u
#define DBGMCU_IDCODE_REV_ID_Pos 16u
#define DBGMCU_CR 0x5C001004u

#if defined(THIMBLE_H7A3) || defined(THIMBLE_H755)
#define PWR_CR3_SMPSEN (1u << 2)
#define PWR_CR3_SMPSEXTHP (1u << 3)
#define PWR_CR3_SMPSLEVEL (3u << 4)
#else
#define PWR_CR3_SCUEN (1u << 2)
#endif

#ifdef THIMBLE_H7A3
#define PWR_SRDCR 0x58024818u
#define PWR_SRDCR_VOS (3u << 14)
#define PWR_SRDCR_VOSRDY (1u << 13)
#define RCC_RSR 0x58024530u
#define RCC_CDCFGR1 0x58024418u
#define RCC_CDCFGR1_HPRE_DIV1 0u
#define RCC_CDCFGR1_CDPPRE_DIV2 (4u << 4)
#define RCC_CDCFGR2 0x5802441Cu
#define RCC_CDCFGR2_CDPPRE1_DIV2 (4u << 4)
#define RCC_CDCFGR2_CDPPRE2_DIV2 (4u << 8)
#define RCC_SRDCFGR 0x58024420u
#define RCC_SRDCFGR_SRDPPRE_DIV2 (4u << 4)
#define RCC_CDCCIP2R 0x58024454u
#define RCC_CDCCIP2R_USART234578SEL 7u
#define RCC_CDCCIP2R_USART234578SEL_0 1u
#define RCC_CDCCIP2R_USART234578SEL_1 2u
#define DBGMCU_CR_DBG_SLEEPCD (1u << 0)
#else
#define PWR_D3CR 0x58024818u
#define PWR_D3CR_VOS (3u << 14)
#define PWR_D3CR_VOSRDY (1u << 13)
#define RCC_RSR 0x580244D0u
#define RCC_D1CFGR 0x58024418u
#define RCC_D1CFGR_HPRE_DIV2 8u
#define RCC_D1CFGR_D1PPRE_DIV2 (4u << 4)
#define RCC_D2CFGR 0x5802441Cu
#define RCC_D2CFGR_D2PPRE1_DIV2 (4u << 4)
#define RCC_D2CFGR_D2PPRE2_DIV2 (4u << 8)
#define RCC_D3CFGR 0x58024420u
#define RCC_D3CFGR_D3PPRE_DIV2 (4u << 4)
#define RCC_D2CCIP2R 0x58024454u
#define RCC_D2CCIP2R_USART28SEL 7u
#define RCC_D2CCIP2R_USART28SEL_0 1u
#define RCC_D2CCIP2R_USART28SEL_1 2u
#define RCC_APB4ENR 0x580244F4u
#define RCC_APB4ENR_SYSCFGEN (1u << 1)
#define DBGMCU_CR_DBG_SLEEPD1 (1u << 0)
#endif

#ifdef THIMBLE_H723
#define SYSCFG_UR18 0x58000748u
#define SYSCFG_UR18_CPU_FREQ_BOOST (1u << 0)
#elif !defined(THIMBLE_H7A3)
#define GPV_AXI_TARG7_FN_MOD 0x51008108u
#define SYSCFG_PWRCR 0x5800042Cu
#define SYSCFG_PWRCR_ODEN (1u << 0)
#endif

#endif

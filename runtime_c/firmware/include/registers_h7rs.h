/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32H7R and H7S (RM0477) that the start-up uses, by ST's names. */
#ifndef REGISTERS_H7RS_H
#define REGISTERS_H7RS_H

#define FLASH_ACR 0x52002000u
#define FLASH_ACR_LATENCY 0xFu
#define FLASH_ACR_WRHIGHFREQ (3u << 4)

#define PWR_SR1 0x58024804u
#define PWR_SR1_ACTVOSRDY (1u << 1)
#define PWR_CSR2 0x5802480Cu
#define PWR_CSR2_BYPASS (1u << 0)
#define PWR_CSR2_LDOEN (1u << 1)
#define PWR_CSR2_SDEN (1u << 2)
#define PWR_CSR2_SMPSEXTHP (1u << 3)
#define PWR_CSR2_SDHILEVEL (1u << 4)
#define PWR_CSR4 0x58024814u
#define PWR_CSR4_VOS (1u << 0)
#define PWR_CSR4_VOSRDY (1u << 1)

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
#define RCC_CFGR_SW 7u
#define RCC_CFGR_SW_0 1u
#define RCC_CFGR_SW_1 2u
#define RCC_CFGR_SWS (7u << 3)
#define RCC_CFGR_SWS_0 (1u << 3)
#define RCC_CFGR_SWS_1 (2u << 3)
#define RCC_CDCFGR 0x58024418u
#define RCC_BMCFGR 0x5802441Cu
#define RCC_BMCFGR_BMPRE_3 8u
#define RCC_APBCFGR 0x58024420u
#define RCC_APBCFGR_PPRE1_2 (4u << 0)
#define RCC_APBCFGR_PPRE2_2 (4u << 4)
#define RCC_APBCFGR_PPRE4_2 (4u << 8)
#define RCC_APBCFGR_PPRE5_2 (4u << 12)
#define RCC_PLLCKSELR 0x58024428u
#define RCC_PLLCKSELR_PLLSRC 3u
#define RCC_PLLCKSELR_DIVM1 (0x3Fu << 4)
#define RCC_PLLCKSELR_DIVM1_Pos 4u
#define RCC_PLLCFGR 0x5802442Cu
#define RCC_PLLCFGR_PLL1FRACEN (1u << 0)
#define RCC_PLLCFGR_PLL1VCOSEL (1u << 1)
#define RCC_PLLCFGR_PLL1SSCGEN (1u << 2)
#define RCC_PLLCFGR_PLL1RGE (3u << 3)
#define RCC_PLLCFGR_PLL1RGE_Pos 3u
#define RCC_PLLCFGR_PLL1PEN (1u << 5)
#define RCC_PLLCFGR_PLL1QEN (1u << 6)
#define RCC_PLLCFGR_PLL1REN (1u << 7)
#define RCC_PLLCFGR_PLL1SEN (1u << 8)
#define RCC_PLL1DIVR1 0x58024430u
#define RCC_PLL1DIVR1_DIVN_Pos 0u
#define RCC_PLL1DIVR1_DIVN 0x1FFu
#define RCC_PLL1DIVR1_DIVP (0x7Fu << 9)
#define RCC_PLL1DIVR1_DIVP_Pos 9u
#define RCC_PLL1DIVR1_DIVQ_Pos 16u
#define RCC_PLL1DIVR1_DIVR_Pos 24u
#define RCC_CCIPR2 0x58024450u
#define RCC_CCIPR2_UART234578SEL 7u
#define RCC_CCIPR2_UART234578SEL_0 1u
#define RCC_CCIPR2_UART234578SEL_1 2u
#define RCC_CIER 0x58024460u
#define RCC_RSR 0x58024530u
#define RCC_RSR_RMVF (1u << 16)
#define RCC_RSR_BORRSTF (1u << 21)
#define RCC_RSR_PORRSTF (1u << 23)

#define DBGMCU_CR 0x5C001004u
#define DBGMCU_CR_DBG_SLEEP (1u << 0)

#endif

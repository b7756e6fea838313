/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32H5 (RM0481, RM0492) that the start-up uses, by ST's names, at their non-secure
 * addresses. */
#ifndef REGISTERS_H5_H
#define REGISTERS_H5_H

#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY 0xFu
#define FLASH_ACR_WRHIGHFREQ_1 (2u << 4)
#define FLASH_ACR_PRFTEN (1u << 8)

#define PWR_VOSCR 0x44020810u
#define PWR_VOSCR_VOS (3u << 4)
#define PWR_VOSSR 0x44020814u
#define PWR_VOSSR_VOSRDY (1u << 3)

#define RCC_CR 0x44020C00u
#define RCC_CR_HSION (1u << 0)
#define RCC_CR_HSIRDY (1u << 1)
#define RCC_CR_HSIDIV (3u << 3)
#define RCC_CR_HSIDIVF (1u << 5)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_PLL1ON (1u << 24)
#define RCC_CR_PLL1RDY (1u << 25)
#define RCC_CR_PLL2ON (1u << 26)
#ifndef THIMBLE_TWO_PLLS /* the H503 */
#define RCC_CR_PLL3ON (1u << 28)
#endif
#define RCC_HSICFGR 0x44020C10u
#define RCC_HSICFGR_HSITRIM (0x7Fu << 16)
#define RCC_CFGR1 0x44020C1Cu
#define RCC_CFGR1_SW (3u << 0)
#define RCC_CFGR1_SWS (3u << 3)
#define RCC_CFGR2 0x44020C20u
#define RCC_PLL1CFGR 0x44020C28u
#define RCC_PLL1CFGR_PLL1SRC_0 (1u << 0)
#define RCC_PLL1CFGR_PLL1RGE_Pos 2u
#define RCC_PLL1CFGR_PLL1M_Pos 8u
#define RCC_PLL1CFGR_PLL1M (0x3Fu << 8)
#define RCC_PLL1CFGR_PLL1PEN (1u << 16)
#define RCC_PLL1DIVR 0x44020C34u
#define RCC_PLL1DIVR_PLL1P_Pos 9u
#define RCC_PLL1DIVR_PLL1N 0x1FFu
#define RCC_PLL1DIVR_PLL1P (0x7Fu << 9)
#define RCC_CIER 0x44020C50u
#define RCC_CCIPR1 0x44020CD8u
#define RCC_CCIPR1_USART3SEL (7u << 6)
#define RCC_CCIPR1_USART3SEL_0 (1u << 6)
#define RCC_CCIPR1_USART3SEL_1 (2u << 6)

#endif

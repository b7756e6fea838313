/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32U5 (RM0456) that the start-up uses, by ST's names, at their non-secure addresses. */
#ifndef REGISTERS_U5_H
#define REGISTERS_U5_H

#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY 0xFu
#define FLASH_ACR_PRFTEN (1u << 8)

#ifdef THIMBLE_SMPS
#define PWR_CR3 0x46020808u
#define PWR_CR3_REGSEL (1u << 1)
#define PWR_SVMSR 0x4602083Cu
#define PWR_SVMSR_REGS (1u << 1)
#endif
#define PWR_VOSR 0x4602080Cu
#define PWR_VOSR_BOOSTRDY (1u << 14)
#define PWR_VOSR_VOSRDY (1u << 15)
#define PWR_VOSR_VOS (3u << 16)
#define PWR_VOSR_BOOSTEN (1u << 18)

#define RCC_CR 0x46020C00u
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_PLL1ON (1u << 24)
#define RCC_CR_PLL1RDY (1u << 25)
#define RCC_CR_PLL2ON (1u << 26)
#define RCC_CR_PLL3ON (1u << 28)
#define RCC_ICSCR3 0x46020C10u
#define RCC_ICSCR3_HSITRIM (0x1Fu << 16)
#define RCC_CFGR1 0x46020C1Cu
#define RCC_CFGR1_SW (3u << 0)
#define RCC_CFGR1_SW_0 (1u << 0)
#define RCC_CFGR1_SWS (3u << 2)
#define RCC_CFGR1_SWS_0 (1u << 2)
#define RCC_CFGR2 0x46020C20u
#define RCC_CFGR2_HPRE (0xFu << 0)
#define RCC_PLL1CFGR 0x46020C28u
#define RCC_PLL1CFGR_PLL1SRC_1 (2u << 0)
#define RCC_PLL1CFGR_PLL1RGE (3u << 2)
#define RCC_PLL1CFGR_PLL1M_Pos 8u
#define RCC_PLL1CFGR_PLL1M (0xFu << 8)
#define RCC_PLL1CFGR_PLL1REN (1u << 18)
#define RCC_PLL1DIVR 0x46020C34u
#define RCC_PLL1DIVR_PLL1R_Pos 24u
#define RCC_PLL1DIVR_PLL1N 0x1FFu
#define RCC_PLL1DIVR_PLL1R (0x7Fu << 24)
#define RCC_CIER 0x46020C50u
#define RCC_AHB3ENR 0x46020C94u
#define RCC_AHB3ENR_PWREN (1u << 2)
#define RCC_CCIPR1 0x46020CE0u
#define RCC_CCIPR1_USART1SEL (3u << 0)
#define RCC_CCIPR1_USART1SEL_1 (2u << 0)

#endif

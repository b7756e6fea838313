/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32U3 (RM0487) that the start-up uses, by ST's names, at their non-secure addresses. */
#ifndef REGISTERS_U3_H
#define REGISTERS_U3_H

#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY 0xFu
#define FLASH_ACR_PRFTEN (1u << 8)

#define PWR_VOSR 0x4003080Cu
#define PWR_VOSR_R1EN (1u << 0)
#define PWR_VOSR_R2EN (1u << 1)
#define PWR_VOSR_BOOSTEN (1u << 8)
#define PWR_VOSR_R1RDY (1u << 16)
#define PWR_VOSR_BOOSTRDY (1u << 24)

#define RCC_CR 0x40030C00u
#define RCC_CR_MSISON (1u << 0)
#define RCC_CR_MSISRDY (1u << 2)
#define RCC_CR_MSIPLL1EN (1u << 5)
#define RCC_CR_MSIPLL0EN (1u << 6)
#define RCC_CR_HSION (1u << 11)
#define RCC_CR_HSIRDY (1u << 13)
#define RCC_CR_HSEON (1u << 16)
#define RCC_ICSCR1 0x40030C08u
#define RCC_ICSCR1_MSIRGSEL (1u << 23)
#define RCC_ICSCR1_MSISDIV (3u << 29)
#define RCC_ICSCR1_MSISDIV_0 (1u << 29)
#define RCC_ICSCR1_MSISDIV_Pos 29u
#define RCC_ICSCR1_MSISSEL (1u << 31)
#define RCC_ICSCR2 0x40030C0Cu
#define RCC_ICSCR2_MSITRIM1_5 (0x20u << 0)
#define RCC_ICSCR2_MSITRIM0_5 (0x20u << 6)
#define RCC_ICSCR3 0x40030C10u
#define RCC_ICSCR3_HSITRIM (0x1Fu << 16)
#define RCC_CFGR1 0x40030C1Cu
#define RCC_CFGR1_SW (3u << 0)
#define RCC_CFGR1_SW_0 (1u << 0)
#define RCC_CFGR1_SWS (3u << 2)
#define RCC_CFGR1_SWS_0 (1u << 2)
#define RCC_CFGR2 0x40030C20u
#define RCC_CFGR2_HPRE (0xFu << 0)
#define RCC_CFGR3 0x40030C24u
#define RCC_CFGR4 0x40030C28u
#define RCC_CFGR4_BOOSTSEL_0 (1u << 0)
#define RCC_CIER 0x40030C50u
#define RCC_AHB1ENR2 0x40030C94u
#define RCC_AHB1ENR2_PWREN (1u << 2)
#define RCC_CCIPR1 0x40030D00u
#define RCC_CCIPR1_USART1SEL (1u << 0)

#endif

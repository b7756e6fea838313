/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32G0 (RM0444) that the start-up uses, by ST's names. */
#ifndef REGISTERS_G0_H
#define REGISTERS_G0_H

#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY 7u
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)
#define FLASH_ACR_ICRST (1u << 11)
#define FLASH_ACR_DBG_SWEN (1u << 18)

#define PWR_CR1 0x40007000u
#define PWR_CR1_VOS (3u << 9)
#define PWR_CR1_VOS_0 (1u << 9)
#define PWR_SR2 0x40007014u
#define PWR_SR2_VOSF (1u << 10)

#define RCC_CR 0x40021000u
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_HSIDIV (7u << 11)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_ICSCR 0x40021004u
#define RCC_ICSCR_HSITRIM (0x7Fu << 8)
#define RCC_CFGR 0x40021008u
#define RCC_CFGR_SW_HSISYS 0u
#define RCC_CFGR_SW_PLLRCLK 2u
#define RCC_CFGR_SWS (7u << 3)
#define RCC_CFGR_SWS_HSISYS 0u
#define RCC_CFGR_SWS_PLLRCLK (2u << 3)
#define RCC_PLLCFGR 0x4002100Cu
#define RCC_PLLCFGR_PLLSRC_HSI 2u
#define RCC_PLLCFGR_PLLM_Pos 4u
#define RCC_PLLCFGR_PLLM (7u << 4)
#define RCC_PLLCFGR_PLLN (0x7Fu << 8)
#define RCC_PLLCFGR_PLLR (7u << 29)
#define RCC_PLLCFGR_PLLN_Pos 8u
#define RCC_PLLCFGR_PLLR_Pos 29u
#define RCC_PLLCFGR_PLLREN (1u << 28)
#define RCC_CIER 0x40021018u
#define RCC_APBENR1 0x4002103Cu
#define RCC_APBENR1_DBGEN (1u << 27)
#define RCC_APBENR1_PWREN (1u << 28)
#define RCC_CCIPR 0x40021054u
#define RCC_CCIPR_USART1SEL 3u
#define RCC_CCIPR_USART1SEL_1 2u
#define RCC_CCIPR_USART2SEL (3u << 2)
#define RCC_CCIPR_USART2SEL_1 (2u << 2)

#endif

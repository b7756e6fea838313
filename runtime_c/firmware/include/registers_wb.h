/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32WB (RM0434) and WL (RM0453) that the start-up uses, by ST's names. */
#ifndef REGISTERS_WB_H
#define REGISTERS_WB_H

#define FLASH_ACR 0x58004000u
#define FLASH_ACR_LATENCY 7u
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)
#define FLASH_ACR_DCEN (1u << 10)
#define FLASH_ACR_ICRST (1u << 11)
#define FLASH_ACR_DCRST (1u << 12)

#define PWR_CR1 0x58000400u
#define PWR_CR1_VOS (3u << 9)
#define PWR_CR1_VOS_0 (1u << 9)
#define PWR_SR2 0x58000414u
#define PWR_SR2_VOSF (1u << 10)

#define RCC_CR 0x58000000u
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#ifdef THIMBLE_HALF_HCLK2 /* the WB */
#define RCC_CR_PLLSAI1ON (1u << 26)
#endif
#define RCC_ICSCR 0x58000004u
#define RCC_ICSCR_HSITRIM (0x7Fu << 24)
#define RCC_CFGR 0x58000008u
#define RCC_CFGR_SW (3u << 0)
#define RCC_CFGR_SW_0 (1u << 0)
#define RCC_CFGR_SWS (3u << 2)
#define RCC_CFGR_SWS_0 (1u << 2)
#define RCC_PLLCFGR 0x5800000Cu
#define RCC_PLLCFGR_PLLSRC_1 (2u << 0)
#define RCC_PLLCFGR_PLLM_Pos 4u
#define RCC_PLLCFGR_PLLM (7u << 4)
#define RCC_PLLCFGR_PLLN (0x7Fu << 8)
#define RCC_PLLCFGR_PLLR (7u << 29)
#define RCC_PLLCFGR_PLLN_Pos 8u
#define RCC_PLLCFGR_PLLREN (1u << 28)
#define RCC_PLLCFGR_PLLR_Pos 29u
#define RCC_CIER 0x58000018u
#define RCC_CCIPR 0x58000088u
#define RCC_CCIPR_USART1SEL (3u << 0)
#define RCC_CCIPR_USART1SEL_1 (2u << 0)
#define RCC_CCIPR_LPUART1SEL (3u << 10)
#define RCC_CCIPR_LPUART1SEL_1 (2u << 10)
#define RCC_EXTCFGR 0x58000108u
#ifdef THIMBLE_HALF_HCLK2
#define RCC_EXTCFGR_C2HPRE_3 (8u << 4)
#define RCC_EXTCFGR_C2HPREF (1u << 17)
#endif

#define DBGMCU_CR 0xE0042004u
#define DBGMCU_CR_DBG_SLEEP (1u << 0)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32F3 (RM0316) that the start-up uses, by ST's names. */
#ifndef REGISTERS_F3_H
#define REGISTERS_F3_H

#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY 7u
#define FLASH_ACR_PRFTBE (1u << 4)

#define RCC_CR 0x40021000u
#define RCC_CR_HSION (1u << 0)
#define RCC_CR_HSIRDY (1u << 1)
#define RCC_CR_HSITRIM (0x1Fu << 3)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_CSSON (1u << 19)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_CFGR 0x40021004u
#define RCC_CFGR_SW_PLL 2u
#define RCC_CFGR_SWS (3u << 2)
#define RCC_CFGR_SWS_HSI 0u
#define RCC_CFGR_SWS_PLL (2u << 2)
#define RCC_CFGR_PPRE1_Pos 8u
#define RCC_CFGR_PPRE2_Pos 11u
#define RCC_CFGR_PLLSRC_HSI_PREDIV (1u << 15)
#define RCC_CFGR_PLLMUL_Pos 18u
#define RCC_CFGR_PLLMUL (0xFu << 18)
#define RCC_CIR 0x40021008u
#define RCC_CFGR2 0x4002102Cu
#define RCC_CFGR2_PREDIV 0xFu
#define RCC_CFGR3 0x40021030u

#define DBGMCU_CR 0xE0042004u
#define DBGMCU_CR_DBG_SLEEP (1u << 0)

#endif

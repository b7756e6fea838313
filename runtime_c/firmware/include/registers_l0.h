/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32L0 (RM0367) and L1 (RM0038) that the start-up uses, by ST's names. */
#ifndef REGISTERS_L0_H
#define REGISTERS_L0_H

#ifdef THIMBLE_STM32L1
#define FLASH_ACR 0x40023C00u
#define FLASH_ACR_ACC64 (1u << 2)

#define RCC_CR 0x40023800u
#define RCC_CR_HSIRDY (1u << 1)
#define RCC_CR_CSSON (1u << 28)
#define RCC_ICSCR 0x40023804u
#define RCC_CFGR 0x40023808u
#define RCC_CIR 0x4002380Cu
#define RCC_APB1ENR 0x40023824u

#define DBGMCU_CR 0xE0042004u
#define DBGMCU_CR_DBG_SLEEP (1u << 0)
#else
#define FLASH_ACR 0x40022000u

#define RCC_CR 0x40021000u
#define RCC_CR_HSIRDY (1u << 2)
#define RCC_CR_HSIDIVEN (1u << 3)
#define RCC_ICSCR 0x40021004u
#define RCC_CFGR 0x4002100Cu
#define RCC_CIER 0x40021010u
#define RCC_APB2ENR 0x40021034u
#define RCC_APB2ENR_DBGEN (1u << 22)
#define RCC_APB1ENR 0x40021038u
#define RCC_CCIPR 0x4002104Cu
#define RCC_CCIPR_USART1SEL 3u
#define RCC_CCIPR_USART1SEL_1 2u
#define RCC_CCIPR_USART2SEL (3u << 2)
#define RCC_CCIPR_USART2SEL_1 (2u << 2)

#define DBGMCU_CR 0x40015804u
#define DBGMCU_CR_DBG_SLEEP (1u << 0)
#endif

#define FLASH_ACR_LATENCY 1u
#define FLASH_ACR_PRFTEN (1u << 1)

#define PWR_CR 0x40007000u
#define PWR_CR_VOS (3u << 11)
#define PWR_CR_VOS_0 (1u << 11)
#define PWR_CSR 0x40007004u
#define PWR_CSR_VOSF (1u << 4)

#define RCC_CR_HSION (1u << 0)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_ICSCR_HSITRIM (0x1Fu << 8)
#define RCC_CFGR_SW_HSI 1u
#define RCC_CFGR_SW_PLL 3u
#define RCC_CFGR_SWS (3u << 2)
#define RCC_CFGR_SWS_HSI (1u << 2)
#define RCC_CFGR_SWS_PLL (3u << 2)
#define RCC_CFGR_PLLMUL_Pos 18u
#define RCC_CFGR_PLLMUL (0xFu << 18)
#define RCC_CFGR_PLLDIV_Pos 22u
#define RCC_CFGR_PLLDIV (3u << 22)
#define RCC_APB1ENR_PWREN (1u << 28)

#endif

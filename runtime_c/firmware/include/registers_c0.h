/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32C0 (RM0490) that the start-up uses, by ST's names. */
#ifndef REGISTERS_C0_H
#define REGISTERS_C0_H

#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY 7u
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)
#define FLASH_ACR_ICRST (1u << 11)
#define FLASH_ACR_DBG_SWEN (1u << 18)

#define RCC_CR 0x40021000u
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_HSIDIV (7u << 11)
#define RCC_CR_HSEON (1u << 16)
#define RCC_ICSCR 0x40021004u
#define RCC_ICSCR_HSITRIM (0x7Fu << 8)
#define RCC_CFGR 0x40021008u
#define RCC_CFGR_SWS (7u << 3)
#define RCC_CIER 0x40021018u
#define RCC_APBENR1 0x4002103Cu
#define RCC_APBENR1_DBGEN (1u << 27)
#define RCC_CCIPR 0x40021054u
#define RCC_CCIPR_USART1SEL 3u

#endif

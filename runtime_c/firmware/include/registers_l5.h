/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32L5 (RM0438) that the start-up uses, by ST's names, at their non-secure addresses. */
#ifndef REGISTERS_L5_H
#define REGISTERS_L5_H

#define FLASH_ACR 0x40022000u
#define FLASH_ACR_LATENCY 0xFu

#define PWR_CR1 0x40007000u
#define PWR_CR1_VOS (3u << 9)
#ifdef THIMBLE_VDDIO2
#define PWR_CR2 0x40007004u
#define PWR_CR2_IOSV (1u << 9)
#endif
#define PWR_SR2 0x40007014u
#define PWR_SR2_VOSF (1u << 10)

#define RCC_CR 0x40021000u
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_CR_PLLSAI1ON (1u << 26)
#define RCC_CR_PLLSAI2ON (1u << 28)
#define RCC_ICSCR 0x40021004u
#define RCC_ICSCR_HSITRIM (0x7Fu << 24)
#define RCC_CFGR 0x40021008u
#define RCC_CFGR_SW (3u << 0)
#define RCC_CFGR_SW_0 (1u << 0)
#define RCC_CFGR_SWS (3u << 2)
#define RCC_CFGR_SWS_0 (1u << 2)
#define RCC_CFGR_HPRE_3 (8u << 4)
#define RCC_PLLCFGR 0x4002100Cu
#define RCC_PLLCFGR_PLLSRC_1 (2u << 0)
#define RCC_PLLCFGR_PLLM_Pos 4u
#define RCC_PLLCFGR_PLLM (0xFu << 4)
#define RCC_PLLCFGR_PLLN (0x7Fu << 8)
#define RCC_PLLCFGR_PLLR (3u << 25)
#define RCC_PLLCFGR_PLLN_Pos 8u
#define RCC_PLLCFGR_PLLREN (1u << 24)
#define RCC_PLLCFGR_PLLR_Pos 25u
#define RCC_CIER 0x40021018u
#define RCC_APB1ENR1 0x40021058u
#define RCC_APB1ENR1_PWREN (1u << 28)
#define RCC_CCIPR1 0x40021088u
#define RCC_CCIPR1_LPUART1SEL (3u << 10)
#define RCC_CCIPR1_LPUART1SEL_1 (2u << 10)

#endif

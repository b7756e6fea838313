/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32L4 (RM0351, RM0394, RM0432) and G4 (RM0440) that the start-up uses, by ST's names. */
#ifndef REGISTERS_L4_H
#define REGISTERS_L4_H

#define FLASH_ACR 0x40022000u
#ifdef THIMBLE_BOOST_MODE
#define FLASH_ACR_LATENCY 0xFu
#else
#define FLASH_ACR_LATENCY 7u
#endif
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)
#define FLASH_ACR_DCEN (1u << 10)
#define FLASH_ACR_ICRST (1u << 11)
#define FLASH_ACR_DCRST (1u << 12)
#ifdef THIMBLE_NO_PLLSAI /* the G4 */
#define FLASH_ACR_DBG_SWEN (1u << 18)
#endif

#define PWR_CR1 0x40007000u
#define PWR_CR1_VOS (3u << 9)
#define PWR_CR1_VOS_0 (1u << 9)
#define PWR_SR2 0x40007014u
#define PWR_SR2_VOSF (1u << 10)
#ifdef THIMBLE_VDDIO2
#define PWR_CR2 0x40007004u
#define PWR_CR2_IOSV (1u << 9)
#endif
#ifdef THIMBLE_BOOST_MODE
#define PWR_CR5 0x40007080u
#define PWR_CR5_R1MODE (1u << 8)
#endif

#define RCC_ICSCR 0x40021004u
#ifdef THIMBLE_BOOST_MODE /* the L4R5 and the G4 */
#define RCC_ICSCR_HSITRIM (0x7Fu << 24)
#else
#define RCC_ICSCR_HSITRIM (0x1Fu << 24)
#endif
#define RCC_CR 0x40021000u
#define RCC_CR_HSION (1u << 8)
#define RCC_CR_HSIRDY (1u << 10)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#ifndef THIMBLE_NO_PLLSAI /* the G4 */
#define RCC_CR_PLLSAI1ON (1u << 26)
#ifndef THIMBLE_ONE_PLLSAI /* the L43x */
#define RCC_CR_PLLSAI2ON (1u << 28)
#endif
#endif
#define RCC_CFGR 0x40021008u
#define RCC_CFGR_SW_HSI 1u
#define RCC_CFGR_SWS (3u << 2)
#define RCC_CFGR_SWS_HSI (1u << 2)
#define RCC_CFGR_SW_PLL 3u
#define RCC_CFGR_SWS_PLL (3u << 2)
#define RCC_CFGR_HPRE_DIV2 (8u << 4)
#define RCC_PLLCFGR 0x4002100Cu
#define RCC_PLLCFGR_PLLSRC_HSI 2u
#ifdef THIMBLE_BOOST_MODE
#define RCC_PLLCFGR_PLLM (0xFu << 4)
#else
#define RCC_PLLCFGR_PLLM (7u << 4)
#endif
#define RCC_PLLCFGR_PLLN (0x7Fu << 8)
#define RCC_PLLCFGR_PLLR (3u << 25)
#define RCC_PLLCFGR_PLLM_Pos 4u
#define RCC_PLLCFGR_PLLN_Pos 8u
#define RCC_PLLCFGR_PLLR_Pos 25u
#define RCC_PLLCFGR_PLLREN (1u << 24)
#define RCC_CIER 0x40021018u
#define RCC_APB1ENR1 0x40021058u
#define RCC_APB1ENR1_PWREN (1u << 28)
#define RCC_CCIPR 0x40021088u
#define RCC_CCIPR_USART2SEL (3u << 2)
#define RCC_CCIPR_USART2SEL_1 (2u << 2)
#define RCC_CCIPR_LPUART1SEL (3u << 10)
#define RCC_CCIPR_LPUART1SEL_1 (2u << 10)

#define DBGMCU_CR 0xE0042004u
#define DBGMCU_CR_DBG_SLEEP (1u << 0)

#endif

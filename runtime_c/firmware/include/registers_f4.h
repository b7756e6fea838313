/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the STM32F4 (RM0090, RM0368, RM0383, RM0390) and F2 (RM0033) that the start-up uses, by ST's
 * names. */
#ifndef REGISTERS_F4_H
#define REGISTERS_F4_H

#define FLASH_ACR 0x40023C00u
#define FLASH_ACR_PRFTEN (1u << 8)
#define FLASH_ACR_ICEN (1u << 9)
#define FLASH_ACR_DCEN (1u << 10)
#define FLASH_ACR_ICRST (1u << 11)
#define FLASH_ACR_DCRST (1u << 12)

#if defined(THIMBLE_OVERDRIVE) || defined(THIMBLE_ONE_VOLTAGE)
#define FLASH_ACR_LATENCY 0xFu
#else
#define FLASH_ACR_LATENCY 7u
#endif

#ifndef THIMBLE_ONE_VOLTAGE /* the F2 */
#define PWR_CR 0x40007000u
#define PWR_CSR 0x40007004u
#define PWR_CSR_VOSRDY (1u << 14)
#ifdef THIMBLE_ONE_VOS_BIT /* the F405 and F407 */
#define PWR_CR_VOS (1u << 14)
#else
#define PWR_CR_VOS (3u << 14)
#endif
#ifdef THIMBLE_OVERDRIVE
#define PWR_CR_ODEN (1u << 16)
#define PWR_CR_ODSWEN (1u << 17)
#define PWR_CSR_ODRDY (1u << 16)
#define PWR_CSR_ODSWRDY (1u << 17)
#endif
#endif

#define RCC_CR 0x40023800u
#define RCC_CR_HSION (1u << 0)
#define RCC_CR_HSIRDY (1u << 1)
#define RCC_CR_HSITRIM (0x1Fu << 3)
#define RCC_CR_HSITRIM_4 (0x10u << 3)
#define RCC_CR_HSEON (1u << 16)
#define RCC_CR_CSSON (1u << 19)
#define RCC_CR_PLLON (1u << 24)
#define RCC_CR_PLLRDY (1u << 25)
#define RCC_CR_PLLI2SON (1u << 26)
#define RCC_PLLCFGR 0x40023804u
#define RCC_PLLCFGR_PLLM 0x3Fu
#define RCC_PLLCFGR_PLLM_Pos 0u
#define RCC_PLLCFGR_PLLN (0x1FFu << 6)
#define RCC_PLLCFGR_PLLN_Pos 6u
#define RCC_PLLCFGR_PLLP (3u << 16)
#define RCC_PLLCFGR_PLLP_Pos 16u
#define RCC_PLLCFGR_PLLSRC (1u << 22)
#define RCC_PLLCFGR_PLLQ (0xFu << 24)
#define RCC_PLLCFGR_PLLQ_Pos 24u
#define RCC_CFGR 0x40023808u
#define RCC_CFGR_SW_PLL 2u
#define RCC_CFGR_SWS (3u << 2)
#define RCC_CFGR_SWS_HSI 0u
#define RCC_CFGR_SWS_PLL (2u << 2)
#define RCC_CFGR_PPRE1_Pos 10u
#define RCC_CFGR_PPRE2_Pos 13u
#define RCC_CIR 0x4002380Cu
#ifndef THIMBLE_ONE_VOLTAGE
#define RCC_APB1ENR 0x40023840u
#define RCC_APB1ENR_PWREN (1u << 28)

#define DBGMCU_IDCODE 0xE0042000u
#define DBGMCU_IDCODE_DEV_ID 0xFFFu
#endif
#define DBGMCU_CR 0xE0042004u
#define DBGMCU_CR_DBG_SLEEP (1u << 0)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* OCTOSPI2 of the STM32U5 (RM0456) and XSPI2 of the STM32H7RS (RM0477) and the STM32N6
 * (RM0486), the same but for their names, which are ST's; their clocks, and the data cache before the first.
 */
#ifndef REGISTERS_OCTOSPI_H
#define REGISTERS_OCTOSPI_H

#ifdef THIMBLE_XSPI
#if THIMBLE_XSPI == 2
#include "registers_n6.h"
#define RCC_CCIPR6 0x56028158u
#define RCC_CCIPR6_XSPI2SEL (3u << 4)
#define RCC_AHB5RSTR 0x56028220u
#define RCC_AHB5RSTR_XSPI2RST (1u << 12)
#define RCC_AHB5RSTR_XSPIMRST (1u << 13)
#define RCC_AHB5ENR 0x56028260u
#define RCC_AHB5ENR_XSPI2EN (1u << 12)
#define RCC_AHB5ENR_XSPIMEN (1u << 13)
#define XSPI2 0x5802A000u
#else
#include "registers_h7rs.h"
#define PWR_CSR2_EN_XSPIM2 (1u << 15)
#define RCC_AHB5RSTR 0x5802447Cu
#define RCC_AHB5RSTR_XSPI2RST (1u << 12)
#define RCC_AHB5RSTR_XSPIMRST (1u << 14)
#define RCC_CCIPR1 0x5802444Cu
#define RCC_CCIPR1_XSPI2SEL (3u << 6)
#define RCC_AHB5ENR 0x58024534u
#define RCC_AHB5ENR_XSPI2EN (1u << 12)
#define RCC_AHB5ENR_XSPIMEN (1u << 14)
#define XSPI2 0x5200A000u
#endif
#define XSPI2_CR (XSPI2 + 0x000u)
#define XSPI2_DCR1 (XSPI2 + 0x008u)
#define XSPI2_DCR2 (XSPI2 + 0x00Cu)
#define XSPI2_SR (XSPI2 + 0x020u)
#define XSPI2_FCR (XSPI2 + 0x024u)
#define XSPI2_DLR (XSPI2 + 0x040u)
#define XSPI2_AR (XSPI2 + 0x048u)
#define XSPI2_DR (XSPI2 + 0x050u)
#define XSPI2_PSMKR (XSPI2 + 0x080u)
#define XSPI2_PSMAR (XSPI2 + 0x088u)
#define XSPI2_PIR (XSPI2 + 0x090u)
#define XSPI2_CCR (XSPI2 + 0x100u)
#define XSPI2_TCR (XSPI2 + 0x108u)
#define XSPI2_IR (XSPI2 + 0x110u)
#define XSPI_CR_EN (1u << 0)
#define XSPI_CR_APMS (1u << 22)
#define XSPI_CR_FMODE_Pos 28u
#define XSPI_DCR1_CSHT_Pos 8u
#define XSPI_DCR1_DEVSIZE_Pos 16u
#define XSPI_SR_TCF (1u << 1)
#define XSPI_SR_SMF (1u << 3)
#define XSPI_SR_BUSY (1u << 5)
#define XSPI_FCR_CTCF (1u << 1)
#define XSPI_FCR_CSMF (1u << 3)
#define XSPI_CCR_IMODE_Pos 0u
#define XSPI_CCR_IDTR (1u << 3)
#define XSPI_CCR_ISIZE_0 (1u << 4)
#define XSPI_CCR_ADMODE_Pos 8u
#define XSPI_CCR_ADSIZE (3u << 12)
#define XSPI_CCR_DMODE_Pos 24u
#else
#define RCC_AHB2RSTR1 0x46020C64u
#define RCC_AHB2RSTR1_OCTOSPIMRST (1u << 21)
#define RCC_AHB2RSTR2 0x46020C68u
#define RCC_AHB2RSTR2_OCTOSPI2RST (1u << 8)
#define RCC_AHB1ENR 0x46020C88u
#define RCC_AHB1ENR_DCACHE1EN (1u << 30)
#define RCC_AHB2ENR1 0x46020C8Cu
#define RCC_AHB2ENR1_OCTOSPIMEN (1u << 21)
#define RCC_AHB2ENR2 0x46020C90u
#define RCC_AHB2ENR2_OCTOSPI2EN (1u << 8)
#define RCC_CCIPR2 0x46020CE4u
#define RCC_CCIPR2_OCTOSPISEL (3u << 20)

#define DCACHE1_CR 0x40031400u
#define DCACHE_CR_EN (1u << 0)
#define DCACHE_CR_HBURST (1u << 31)
#define DCACHE1_SR 0x40031404u
#define DCACHE_SR_BUSYF (1u << 0)

#define OCTOSPI2_CR 0x420D2400u
#define OCTOSPI2_DCR1 0x420D2408u
#define OCTOSPI2_DCR2 0x420D240Cu
#define OCTOSPI2_SR 0x420D2420u
#define OCTOSPI2_FCR 0x420D2424u
#define OCTOSPI2_DLR 0x420D2440u
#define OCTOSPI2_AR 0x420D2448u
#define OCTOSPI2_DR 0x420D2450u
#define OCTOSPI2_PSMKR 0x420D2480u
#define OCTOSPI2_PSMAR 0x420D2488u
#define OCTOSPI2_PIR 0x420D2490u
#define OCTOSPI2_CCR 0x420D2500u
#define OCTOSPI2_TCR 0x420D2508u
#define OCTOSPI2_IR 0x420D2510u
#define OCTOSPI_CR_EN (1u << 0)
#define OCTOSPI_CR_APMS (1u << 22)
#define OCTOSPI_CR_FMODE_Pos 28u
#define OCTOSPI_DCR1_DLYBYP (1u << 3)
#define OCTOSPI_DCR1_CSHT_Pos 8u
#define OCTOSPI_DCR1_DEVSIZE_Pos 16u
#define OCTOSPI_SR_TCF (1u << 1)
#define OCTOSPI_SR_SMF (1u << 3)
#define OCTOSPI_SR_BUSY (1u << 5)
#define OCTOSPI_FCR_CTCF (1u << 1)
#define OCTOSPI_FCR_CSMF (1u << 3)
#define OCTOSPI_CCR_IMODE_Pos 0u
#define OCTOSPI_CCR_IDTR (1u << 3)
#define OCTOSPI_CCR_ISIZE_0 (1u << 4)
#define OCTOSPI_CCR_ADMODE_Pos 8u
#define OCTOSPI_CCR_ADSIZE (3u << 12)
#define OCTOSPI_CCR_DMODE_Pos 24u
#endif

#endif

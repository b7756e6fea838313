/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction cache of the STM32 that have a Cortex-M33 (RM0438, RM0456, RM0481), by ST's names. */
#ifndef REGISTERS_ICACHE_H
#define REGISTERS_ICACHE_H

#define ICACHE_CR 0x40030400u
#define ICACHE_CR_EN (1u << 0)
#define ICACHE_CR_CACHEINV (1u << 1)
#define ICACHE_SR 0x40030404u
#define ICACHE_SR_BUSYF (1u << 0)
#define ICACHE_SR_BSYENDF (1u << 1)
#define ICACHE_FCR 0x4003040Cu
#define ICACHE_FCR_CBSYENDF (1u << 1)

#endif

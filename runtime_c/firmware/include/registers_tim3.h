/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of TIM3 of STM32s with a Cortex-M0+ that the counter uses (RM0444, RM0490, RM0367), by ST's
 * names. */
#ifndef REGISTERS_TIM3_H
#define REGISTERS_TIM3_H

#define TIM3_CR1 0x40000400u
#define TIM_CR1_CEN (1u << 0)
#define TIM3_EGR 0x40000414u
#define TIM_EGR_UG (1u << 0)
#define TIM3_CNT 0x40000424u
#define TIM3_PSC 0x40000428u
#define TIM3_ARR 0x4000042Cu

#endif

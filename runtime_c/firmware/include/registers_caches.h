/* SPDX-License-Identifier: Apache-2.0 */
/* The caches of a Cortex-M7 and an M55 (Arm DDI 0403 B3.2.3, B2.2.7; DDI 0553 D1.2). */
#ifndef REGISTERS_CACHES_H
#define REGISTERS_CACHES_H

#define SCB_CCR_DC_Msk (1u << 16)
#define SCB_CCR_IC_Msk (1u << 17)
#define SCB_CCSIDR 0xE000ED80u
#define SCB_CCSIDR_ASSOCIATIVITY_Pos 3u
#define SCB_CCSIDR_ASSOCIATIVITY_Msk (0x3FFu << 3)
#define SCB_CCSIDR_NUMSETS_Pos 13u
#define SCB_CCSIDR_NUMSETS_Msk (0x7FFFu << 13)
#define SCB_CSSELR 0xE000ED84u
#define SCB_ICIALLU 0xE000EF50u
#define SCB_DCISW 0xE000EF60u
#define SCB_DCISW_SET_Pos 5u
#define SCB_DCISW_WAY_Pos 30u
#define SCB_DCCSW 0xE000EF6Cu
#define SCB_DCCSW_SET_Pos 5u
#define SCB_DCCSW_WAY_Pos 30u
#define SCB_DCCISW 0xE000EF74u

#endif

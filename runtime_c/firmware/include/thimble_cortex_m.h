/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of the Armv7-M and Armv8-M system control space (Arm DDI 0403 B3.2, DDI 0553 D1.2). */
#ifndef THIMBLE_CORTEX_M_H
#define THIMBLE_CORTEX_M_H

#include <stdint.h>

/* Tests on a computer put simulated registers in its place. */
#ifndef THIMBLE_REGISTER
#define THIMBLE_REGISTER(address) (*(volatile uint32_t *)(address))
#endif

#define THIMBLE_NVIC_ISER(irq) THIMBLE_REGISTER(0xE000E100u + 4u * ((irq) / 32u))
#define THIMBLE_NVIC_ICPR(irq) THIMBLE_REGISTER(0xE000E280u + 4u * ((irq) / 32u))
#define THIMBLE_NVIC_BIT(irq) (1u << ((irq) % 32u))

#define THIMBLE_SCB_VTOR THIMBLE_REGISTER(0xE000ED08u)
#define THIMBLE_SCB_AIRCR THIMBLE_REGISTER(0xE000ED0Cu)
#define THIMBLE_SCB_AIRCR_SYSRESETREQ 0x05FA0004u
#define THIMBLE_SCB_CCR THIMBLE_REGISTER(0xE000ED14u)
#define THIMBLE_SCB_CFSR THIMBLE_REGISTER(0xE000ED28u)
#define THIMBLE_SCB_HFSR THIMBLE_REGISTER(0xE000ED2Cu)
#define THIMBLE_SCB_MMFAR THIMBLE_REGISTER(0xE000ED34u)
#define THIMBLE_SCB_BFAR THIMBLE_REGISTER(0xE000ED38u)
#define THIMBLE_SCB_CPACR THIMBLE_REGISTER(0xE000ED88u)
#define THIMBLE_SCB_CPACR_FPU (0xFu << 20)
#define THIMBLE_SCB_DEMCR THIMBLE_REGISTER(0xE000EDFCu)
#define THIMBLE_SCB_DEMCR_TRCENA (1u << 24)

#define THIMBLE_MPU_CTRL THIMBLE_REGISTER(0xE000ED94u)
#define THIMBLE_MPU_CTRL_ENABLE (1u << 0)
#define THIMBLE_MPU_CTRL_PRIVDEFENA (1u << 2)
#define THIMBLE_MPU_RNR THIMBLE_REGISTER(0xE000ED98u)
#define THIMBLE_MPU_RBAR THIMBLE_REGISTER(0xE000ED9Cu)
#define THIMBLE_MPU_RASR THIMBLE_REGISTER(0xE000EDA0u)
#define THIMBLE_MPU_RASR_ENABLE (1u << 0)
#define THIMBLE_MPU_RASR_32_KB (14u << 1)
#define THIMBLE_MPU_RASR_XN (1u << 28)

static inline void thimble_barrier(void)
{
#ifdef __arm__
    __asm volatile("dsb\n\tisb" ::: "memory");
#endif
}

#endif

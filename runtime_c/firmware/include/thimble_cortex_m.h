/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the registers of the core. */
#ifndef THIMBLE_CORTEX_M_H
#define THIMBLE_CORTEX_M_H

#include "registers_cortex_m.h"

#include <stdint.h>

/* Tests on a computer put simulated registers in its place. */
#ifndef THIMBLE_REGISTER
#define THIMBLE_REGISTER(address) (*(volatile uint32_t *)(address))
#define THIMBLE_REGISTER_BYTE(address) (*(volatile uint8_t *)(address))
#endif

static inline void thimble_barrier(void)
{
#ifdef __arm__
    __asm volatile("dsb\n\tisb" ::: "memory");
#endif
}

/* Enables an interrupt in the NVIC. */
static inline void thimble_interrupt_enable(uint32_t irq)
{
    THIMBLE_REGISTER(NVIC_ISER + 4u * (irq / 32u)) = 1u << (irq % 32u);
}

/* Puts SysTick, NVIC and MPU into the state that a reset leaves, whatever ran before: a ROM boot loader
 * starts the firmware without one. */
void thimble_core_settle(void);

#if !defined(__ARM_ARCH_8M_MAIN__) && !defined(__ARM_ARCH_8_1M_MAIN__) && !defined(THIMBLE_NO_MPU)
/* Makes the MPU refuse all access to the 2^size_log2 bytes from `start` on, a multiple of them. Off in fault
 * handlers. */
void thimble_mpu_guard(uint32_t start, uint32_t size_log2);

/* Likewise for 0x60000000 to 0xDFFFFFFF, where a Cortex-M7 reads ahead though nothing is there. */
void thimble_mpu_refuse_external(void);

/* But for the 2^size_log2 bytes from `start` on, a multiple of them: data that is cached, and not written. */
void thimble_mpu_allow_constants(uint32_t start, uint32_t size_log2);
#endif

#ifdef THIMBLE_CACHES
/* Invalidates and enables the instruction and data caches. */
void thimble_caches_enable(void);

/* Writes back all that the data cache holds. */
void thimble_cache_clean(void);

/* Writes back and forgets all that the data cache holds, and forgets what the instruction cache holds. */
void thimble_cache_empty(void);
#endif

#endif

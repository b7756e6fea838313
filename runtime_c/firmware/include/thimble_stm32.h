/* SPDX-License-Identifier: Apache-2.0 */
/* What the STM32 families share. */
#ifndef THIMBLE_STM32_H
#define THIMBLE_STM32_H

#include "thimble_cortex_m.h"

#include <stdint.h>

/* Waits until all bits of `mask` are set in the register at `address`. */
static inline void thimble_wait_set(uint32_t address, uint32_t mask)
{
    while ((THIMBLE_REGISTER(address) & mask) != mask) {
    }
}

/* Replaces the bits of `mask` by `value` in the register at `address`. */
static inline void thimble_replace(uint32_t address, uint32_t mask, uint32_t value)
{
    THIMBLE_REGISTER(address) = (THIMBLE_REGISTER(address) & ~mask) | value;
}

/* Sets bits of a clock enable register and waits the two bus cycles that it takes. */
static inline void thimble_clock_enable(uint32_t address, uint32_t mask)
{
    THIMBLE_REGISTER(address) |= mask;
    (void)THIMBLE_REGISTER(address);
    thimble_barrier();
}

/* Gives the UART its clock and its two pins, as the board's THIMBLE_TX_*, THIMBLE_RX_* say. */
void thimble_stm32_uart_pins(void);

/* Invalidates and enables the instruction and data caches of a Cortex-M7. */
void thimble_m7_caches_enable(void);

#endif

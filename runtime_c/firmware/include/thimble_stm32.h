/* SPDX-License-Identifier: Apache-2.0 */
/* Macros and functions that the STM32 families share. */
#ifndef THIMBLE_STM32_H
#define THIMBLE_STM32_H

#include "thimble_cortex_m.h"

#include <stdint.h>

/* The prescaler field of an APB for a divider of 1, 2, 4, 8 or 16. */
#define THIMBLE_APB_CODE(divider)                                                                            \
    ((divider) == 1u ? 0u : (divider) == 2u ? 4u : (divider) == 4u ? 5u : (divider) == 8u ? 6u : 7u)

/* Waits until the bits of `mask` in the register at `address` are `value`, for seconds at most. Returns
 * whether they are; if not, the fault record tells what was waited for. */
int32_t thimble_answers(uint32_t address, uint32_t mask, uint32_t value);

/* Likewise for what the firmware cannot do without: it stops here where that does not come. */
void thimble_wait_for(uint32_t address, uint32_t mask, uint32_t value);

/* Waits until all bits of `mask` are set in the register at `address`. */
void thimble_wait_set(uint32_t address, uint32_t mask);

/* Waits until all bits of `mask` are clear in the register at `address`. */
void thimble_wait_clear(uint32_t address, uint32_t mask);

/* Replaces the bits of `mask` by `value` in the register at `address`. */
static inline void thimble_replace(uint32_t address, uint32_t mask, uint32_t value)
{
    THIMBLE_REGISTER(address) = (THIMBLE_REGISTER(address) & ~mask) | value;
}

/* The number in the field `mask` of the register at `address`. */
static inline uint32_t thimble_field(uint32_t address, uint32_t mask)
{
    return (THIMBLE_REGISTER(address) & mask) / (mask & (0u - mask));
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

/* Connects a pin to a peripheral; `pull` is what GPIO_PUPDR takes. */
void thimble_stm32_alternate_pin(uint32_t port, uint32_t pin, uint32_t function, uint32_t pull);

#ifdef THIMBLE_EXTERNAL
/* Gives the pins of the memory beside the chip to its controller: THIMBLE_EXTERNAL_PINS. */
void thimble_stm32_external_pins(void);
#endif

/* Empties and enables the instruction cache of an STM32 with a Cortex-M33. */
void thimble_stm32_icache_enable(void);

#endif

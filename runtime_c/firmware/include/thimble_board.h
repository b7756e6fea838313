/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that each board gives the firmware. */
#ifndef THIMBLE_BOARD_H
#define THIMBLE_BOARD_H

#include <stdint.h>

/* Clocks, flash wait states, caches, pins. Runs before .data and .bss are set up: no statics. */
void thimble_board_init(void);

/* The core's clock as the registers have it, which may be less than THIMBLE_CLOCK_HZ; 0 where none says. */
uint32_t thimble_board_clock_hz(void);

#ifdef THIMBLE_EXTERNAL
/* Makes the memory beside the chip readable, like other memory; leaves its JEDEC identity, the manufacturer
 * in the lowest byte, in `identity`. Runs after thimble_board_init: no statics. Returns 0, or why not. */
int32_t thimble_external_init(uint32_t *identity);
#endif

void thimble_uart_init(void);
void thimble_uart_put(uint8_t byte);

/* Takes the byte that has come, and makes the receiver ready for the next; -1 where none has. */
int32_t thimble_uart_take(void);

/* Enables the interrupt of reception (receive.c). */
void thimble_uart_listen(void);
void thimble_uart_interrupt(void);

/* Sleeps until a byte comes. Interrupts are masked but for the moment that takes it. */
uint8_t thimble_uart_get(void);

/* Waits until the last byte has left the transmitter. */
void thimble_uart_flush(void);

/* Starts the counter, from the same state each time: so that the same run has the same count. */
void thimble_counter_init(void);

#endif

/* What each board gives the firmware. */
#ifndef THIMBLE_BOARD_H
#define THIMBLE_BOARD_H

#include <stdint.h>

/* Clocks, flash wait states, caches, pins. Runs before .data and .bss are set up: no statics. */
void thimble_board_init(void);

void thimble_uart_init(void);
void thimble_uart_put(uint8_t byte);

/* Sleeps until a byte comes. Interrupts stay masked: a pending one ends the sleep. */
uint8_t thimble_uart_get(void);

/* Waits until the last byte has left the transmitter. */
void thimble_uart_flush(void);

/* Starts the counter, from the same state each time: so that the same run has the same count. */
void thimble_counter_init(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_board.h"

/* The core runs from the 16 MHz RC oscillator after reset, and so do the timers and the UART. */
void thimble_board_init(void)
{
}

/* No register says it. */
uint32_t thimble_board_clock_hz(void)
{
    return 0;
}

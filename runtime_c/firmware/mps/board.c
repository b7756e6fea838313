/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_board.h"

/* The FPGA's clocks run from reset. */
void thimble_board_init(void)
{
}

/* No register says it. */
uint32_t thimble_board_clock_hz(void)
{
    return 0;
}

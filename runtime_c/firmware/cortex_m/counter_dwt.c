/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_board.h"
#include "thimble_cortex_m.h"

/* DWT cycle counter (Arm DDI 0403 C1.8): counts core clock cycles, 32 bits. */
void thimble_counter_init(void)
{
    THIMBLE_SCB_DEMCR |= THIMBLE_SCB_DEMCR_TRCENA;
    THIMBLE_REGISTER(0xE0001FB0u) = 0xC5ACCE55u; /* DWT_LAR: locked on the Cortex-M7 */
    THIMBLE_REGISTER(0xE0001000u) &= ~1u;        /* DWT_CTRL.CYCCNTENA */
    THIMBLE_REGISTER(0xE0001004u) = 0;           /* DWT_CYCCNT */
    THIMBLE_REGISTER(0xE0001000u) |= 1u;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_board.h"
#include "thimble_cortex_m.h"

/* TIM2 (RM0090 18.4): counts up, 32 bits, prescaler 1. QEMU's runs at 1 GHz of virtual time. */
void thimble_counter_init(void)
{
    const uint32_t base = 0x40000000u;
    THIMBLE_REGISTER(base + 0x28u) = 0;           /* PSC */
    THIMBLE_REGISTER(base + 0x2Cu) = 0xFFFFFFFFu; /* ARR */
    THIMBLE_REGISTER(base + 0x14u) = 1;           /* EGR.UG loads them */
    THIMBLE_REGISTER(base + 0x00u) = 1;           /* CR1.CEN */
}

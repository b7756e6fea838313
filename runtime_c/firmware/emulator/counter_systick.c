/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_board.h"
#include "thimble_cortex_m.h"
#include "thimble_counter.h"

static thimble_count counted;

/* SysTick (Arm DDI 0403 B3.3) of a machine that has no other timer: 24 bits of the core's clock, down. */
void thimble_counter_init(void)
{
    THIMBLE_REGISTER(SysTick_CTRL) = 0;
    THIMBLE_REGISTER(SysTick_LOAD) = SysTick_LOAD_RELOAD_Msk;
    THIMBLE_REGISTER(SysTick_VAL) = 0; /* whatever is written */
    THIMBLE_REGISTER(SysTick_CTRL) = SysTick_CTRL_CLKSOURCE_Msk | SysTick_CTRL_ENABLE_Msk;
    counted = 0;
}

/* The bits beyond 24 come from the calls themselves, so that what runs between two calls must be shorter than
 * 2^24 ticks. */
thimble_count thimble_counter(void)
{
    const uint32_t fine = SysTick_LOAD_RELOAD_Msk - THIMBLE_REGISTER(SysTick_VAL);
    counted += (fine - (uint32_t)counted) & SysTick_LOAD_RELOAD_Msk;
    return counted;
}

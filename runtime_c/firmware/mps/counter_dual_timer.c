/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_board.h"
#include "thimble_cortex_m.h"
#include "thimble_counter.h"

#define BASE (THIMBLE_COUNTER_REGISTER - 4u)
#define LOAD(timer) THIMBLE_REGISTER(BASE + 0x20u * (timer))
#define VALUE(timer) THIMBLE_REGISTER(BASE + 0x20u * (timer) + 4u)
#define CONTROL(timer) THIMBLE_REGISTER(BASE + 0x20u * (timer) + 8u)
#define CONTROL_32_BITS 0x02u
#define CONTROL_BY_256 0x08u
#define CONTROL_ENABLE 0x80u

/* CMSDK dual-input timer (Arm DDI 0479, 4.5): both timers run freely, 32 bits, counting down; the second
 * one 256 times slower, to tell how often the first has wrapped. */
void thimble_counter_init(void)
{
    for (uint32_t timer = 0; timer < 2u; timer++) {
        CONTROL(timer) = 0u;
        LOAD(timer) = 0xFFFFFFFFu;
    }
    CONTROL(1u) = CONTROL_ENABLE | CONTROL_32_BITS | CONTROL_BY_256;
    CONTROL(0u) = CONTROL_ENABLE | CONTROL_32_BITS;
}

thimble_count thimble_counter(void)
{
    const uint32_t fine = 0u - VALUE(0u);
    const uint64_t coarse = (uint64_t)(0u - VALUE(1u)) << 8;
    const uint64_t wraps = (coarse + 0x80000000u - fine) >> 32;
    return (wraps << 32) | fine;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_board.h"
#include "thimble_cortex_m.h"
#include "thimble_counter.h"

#define CNTCR THIMBLE_REGISTER(0x58100000u)
#define CNTCV_LOW THIMBLE_REGISTER(0x58100008u)
#define CNTCV_HIGH THIMBLE_REGISTER(0x5810000Cu)
#define STATUS_LOW THIMBLE_REGISTER(THIMBLE_COUNTER_REGISTER)
#define STATUS_HIGH THIMBLE_REGISTER(THIMBLE_COUNTER_REGISTER + 4u)

/* SSE-300 system counter (Arm 101773), 64 bits: the control frame starts it, the status frame shows it. */
void thimble_counter_init(void)
{
    CNTCR = 0u; /* EN */
    CNTCV_LOW = 0u;
    CNTCV_HIGH = 0u;
    CNTCR = 1u;
}

thimble_count thimble_counter(void)
{
    uint32_t high;
    uint32_t low;
    do {
        high = STATUS_HIGH;
        low = STATUS_LOW;
    } while (high != STATUS_HIGH);
    return ((uint64_t)high << 32) | low;
}

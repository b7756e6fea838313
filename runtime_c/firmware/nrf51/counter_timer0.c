/* SPDX-License-Identifier: Apache-2.0 */
/* TIMER0 (nRF51 Series Reference Manual 3.0, chapter 18): 16 MHz in 32 bits. */
#include "thimble_board.h"
#include "thimble_cortex_m.h"
#include "thimble_counter.h"

#define TIMER_TASKS_START THIMBLE_REGISTER(0x40008000u)
#define TIMER_TASKS_STOP THIMBLE_REGISTER(0x40008004u)
#define TIMER_TASKS_CLEAR THIMBLE_REGISTER(0x4000800Cu)
#define TIMER_TASKS_CAPTURE_0 THIMBLE_REGISTER(0x40008040u)
#define TIMER_MODE THIMBLE_REGISTER(0x40008504u)
#define TIMER_MODE_TIMER 0u
#define TIMER_BITMODE THIMBLE_REGISTER(0x40008508u)
#define TIMER_BITMODE_32 3u
#define TIMER_PRESCALER THIMBLE_REGISTER(0x40008510u)

static thimble_count counted;

void thimble_counter_init(void)
{
    TIMER_TASKS_STOP = 1;
    TIMER_MODE = TIMER_MODE_TIMER;
    TIMER_BITMODE = TIMER_BITMODE_32;
    TIMER_PRESCALER = 0;
    TIMER_TASKS_CLEAR = 1;
    TIMER_TASKS_START = 1;
    counted = 0;
}

/* The bits beyond 32 come from the calls themselves. */
thimble_count thimble_counter(void)
{
    TIMER_TASKS_CAPTURE_0 = 1;
    const uint32_t now = THIMBLE_REGISTER(THIMBLE_COUNTER_REGISTER);
    counted += now - (uint32_t)counted;
    return counted;
}

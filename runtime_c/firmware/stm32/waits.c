/* SPDX-License-Identifier: Apache-2.0 */
/* Waits of the start-up, which end: what did not come is left in RAM, where a debug probe reads it
 * (docs/hardware.md, "A board that stays silent"). */
#include "thimble_firmware.h"
#include "thimble_stm32.h"

/* A tenth of a second or more at the highest clock, some seconds at the oscillator's: a turn reads a register
 * behind a bus. */
#ifndef THIMBLE_WAIT_TURNS
#define THIMBLE_WAIT_TURNS (THIMBLE_CLOCK_HZ / 64u)
#endif

#ifndef THIMBLE_STOPPED
#define THIMBLE_STOPPED() thimble_barrier()
#endif

int32_t thimble_answers(uint32_t address, uint32_t mask, uint32_t value)
{
    uint32_t held = 0;
    for (uint32_t turn = 0; turn < THIMBLE_WAIT_TURNS; turn++) {
        held = THIMBLE_REGISTER(address);
        if ((held & mask) == value) {
            return 1;
        }
    }
    volatile uint32_t *words = thimble_fault.words;
    words[0] = address;
    words[1] = mask;
    words[2] = value;
    words[3] = held;
    thimble_fault_mark(THIMBLE_START_WAITS);
    return 0;
}

void thimble_wait_for(uint32_t address, uint32_t mask, uint32_t value)
{
    if (thimble_answers(address, mask, value) == 0) {
        for (;;) {
            THIMBLE_STOPPED();
        }
    }
}

void thimble_wait_set(uint32_t address, uint32_t mask)
{
    thimble_wait_for(address, mask, mask);
}

void thimble_wait_clear(uint32_t address, uint32_t mask)
{
    thimble_wait_for(address, mask, 0);
}

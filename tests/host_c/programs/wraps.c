/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that take billions of counts, on simulated counter registers. */
#include <inttypes.h>
#include <stdio.h>

#include "thimble_firmware.h"
#include "thimble_hooks.h"

static uint64_t now;

/* What the registers of the board would show now: the test advances time by itself. */
volatile uint32_t simulated[64];

#ifdef SYSTICK_LAG
#include "registers_cortex_m.h"
#include "registers_tim3.h"

/* SysTick, and TIM3 that began SYSTICK_LAG cycles later and counts each 65536th. */
volatile uint32_t *simulated_register(uint32_t address)
{
    static volatile uint32_t shown;
    shown = 0;
    if (address == SysTick_VAL) {
        shown = SysTick_LOAD_RELOAD_Msk - ((uint32_t)now & SysTick_LOAD_RELOAD_Msk);
    }
    if (address == TIM3_CNT) {
        shown = (uint32_t)((now - SYSTICK_LAG) >> 16) & 0xFFFFu;
    }
    return &shown;
}
#endif

static void advance(uint64_t ticks)
{
    now += ticks;
#ifdef THIMBLE_COUNTER_WIDE
    simulated[1] = 0xFFFFFFFFu - (uint32_t)now;
    simulated[9] = 0xFFFFFFFFu - (uint32_t)(now >> 8);
#else
    simulated[1] = (uint32_t)now;
#endif
}

#ifndef THIMBLE_COUNTER_WIDE
void thimble_counter_init(void)
{
    advance(0);
}
#endif

static const uint64_t takes[] = TAKES;

static int32_t run(uint8_t *arena)
{
    (void)arena;
    for (uint32_t i = 0; i < 3u; i++) {
        THIMBLE_OP_BEGIN(i);
        advance(takes[i]);
        THIMBLE_OP_END(i);
        advance(5);
    }
    return 0;
}

thimble_count thimble_operator_counts[4];
uint32_t thimble_model_index;
const thimble_model thimble_models[] = {
    {.operator_count = 3, .operator_counts = thimble_operator_counts, .run = run}};

int main(void)
{
    uint64_t total;
    advance(1234567);
    thimble_measured_run(&total);
    printf("%" PRIu64, total);
    for (uint32_t i = 0; i < 3u; i++) {
        printf(" %" PRIu64, (uint64_t)thimble_operator_counts[i]);
    }
    return 0;
}

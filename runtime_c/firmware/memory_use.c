/* SPDX-License-Identifier: Apache-2.0 */
/* High-water marks: memory is painted at reset, and what lost its paint has been used. */
#include "thimble_firmware.h"

#include <string.h>

void thimble_memory_paint(void)
{
    uint32_t *top;
    __asm volatile("mov %0, sp" : "=r"(top));
    for (volatile uint32_t *word = thimble_stack_low; word < top; word++) {
        *word = THIMBLE_STACK_PAINT;
    }
    for (uint32_t i = 0; i < thimble_model_count; i++) {
        thimble_arena_paint(&thimble_models[i]);
    }
}

void thimble_arena_paint(const thimble_model *model)
{
    for (uint32_t i = 0; i < model->part_count; i++) {
        (void)memset(model->parts[i].start, THIMBLE_ARENA_PAINT, model->parts[i].size_bytes);
    }
}

uint32_t thimble_stack_used_bytes(void)
{
    const volatile uint32_t *word = thimble_stack_low;
    /* cppcheck-suppress [comparePointers]: both are ends of one section. */
    while (word < thimble_stack_high && *word == THIMBLE_STACK_PAINT) {
        word++;
    }
    return (uint32_t)((uintptr_t)thimble_stack_high - (uintptr_t)word);
}

static uint32_t part_used_bytes(const thimble_part *part)
{
    uint32_t used = part->size_bytes;
    while (used != 0 && part->start[used - 1u] == THIMBLE_ARENA_PAINT) {
        used--;
    }
    return used;
}

uint32_t thimble_arena_used_bytes(void)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < thimble_the_model->part_count; i++) {
        used += part_used_bytes(&thimble_the_model->parts[i]);
    }
    return used;
}

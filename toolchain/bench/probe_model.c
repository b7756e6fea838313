/* SPDX-License-Identifier: Apache-2.0 */
/* A model for tests of the firmware, in the shape that codegen gives its own: 600 input bytes at 0,
 * 600 output bytes at 600. The first input byte asks for a fault. */
#include <stdint.h>

#ifndef THIMBLE_OP_BEGIN
#define THIMBLE_OP_BEGIN(index)
#define THIMBLE_OP_END(index)
#endif

#define BYTES 600

int32_t probe_run(uint8_t *arena);

static const int8_t probe_weights[4] = {1, 2, 3, 4};

static __attribute__((noinline)) uint32_t dig(volatile uint8_t *arena, uint32_t depth)
{
    volatile uint32_t frame[16];
    frame[depth % 16u] = depth;
    return depth == 0 ? 0 : dig(arena, depth - 1u) + frame[depth % 16u];
}

static __attribute__((noinline)) int32_t scale(uint8_t *arena)
{
    for (uint32_t i = 0; i < BYTES; i++) {
        arena[BYTES + i] = (uint8_t)(arena[i] * (uint8_t)probe_weights[i % 4u]);
    }
    return 0;
}

static __attribute__((noinline)) int32_t misbehave(uint8_t *arena)
{
    switch (arena[0]) {
    case 0xF1:
        return *(volatile int32_t *)0x9FFFFFF0u;
    case 0xF2:
        __asm volatile("udf #0");
        return 0;
    case 0xF3:
        return (int32_t)dig(arena, 100000);
    case 0xF4:
        return -3;
    default:
        return 0;
    }
}

int32_t probe_run(uint8_t *arena)
{
    int32_t status;
    THIMBLE_OP_BEGIN(0);
    status = scale(arena);
    THIMBLE_OP_END(0);
    if (status != 0) {
        return status;
    }
    THIMBLE_OP_BEGIN(1);
    status = misbehave(arena);
    THIMBLE_OP_END(1);
    return status;
}

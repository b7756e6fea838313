/* SPDX-License-Identifier: Apache-2.0 */
/* Short runs of bytes, as rows of channels are: too short for a call of memmove, seldom aligned. */
#ifndef THIMBLE_RUN_H
#define THIMBLE_RUN_H

#include <stdint.h>
#include <string.h>

/* Copies upwards: the target may overlap the source only where it begins at or below it. */
static inline void thimble_copy_run(int8_t *target, const int8_t *source, int32_t bytes)
{
    uint32_t word;

    for (; bytes >= 4; bytes -= 4, source += 4, target += 4) {
        (void)memcpy(&word, source, 4);
        (void)memcpy(target, &word, 4);
    }
    for (; bytes > 0; bytes--) {
        *target++ = *source++;
    }
}

static inline void thimble_fill_run(int8_t *target, uint8_t value, int32_t bytes)
{
    const uint32_t word = value * 0x01010101U;

    for (; bytes >= 4; bytes -= 4, target += 4) {
        (void)memcpy(target, &word, 4);
    }
    for (; bytes > 0; bytes--) {
        *target++ = (int8_t)value;
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/** @file Between the entries of the int16 logistic table. */
#ifndef THIMBLE_LOGISTIC_TABLE_H
#define THIMBLE_LOGISTIC_TABLE_H

#include <stdint.h>

/** x * multiplier + rounding, which wraps as TFLite's does where the input scale is absurd. */
static inline int32_t thimble_logistic_place(int32_t x, int32_t multiplier, int32_t rounding)
{
    return (int32_t)((uint32_t)x * (uint32_t)multiplier + (uint32_t)rounding);
}

/** The logistic function in Q0.16 with `bits` more fraction bits, at `place` / 2^`bits` entries; `most`
 * beyond the table, whose entries are 32768 less than their values. */
static inline uint32_t
thimble_logistic_between(const int16_t *table, uint32_t place, uint32_t bits, uint32_t most)
{
    const uint32_t index = place >> bits;
    if (index >= 255u) {
        return most << bits;
    }
    const uint32_t low = (uint32_t)table[index] + 32768u;
    const uint32_t high = (uint32_t)table[index + 1u] + 32768u;
    return (low << bits) + (place & ((1u << bits) - 1u)) * (high - low);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Values held within a range: to int8 in one instruction where the core has it. */
#ifndef THIMBLE_SATURATE_H
#define THIMBLE_SATURATE_H

#include <stdint.h>

static inline int32_t thimble_clamp(int32_t value, int32_t min, int32_t max)
{
    if (value < min) {
        return min;
    }
    return value > max ? max : value;
}

static inline int32_t thimble_clamp_s16(int32_t value, int32_t min, int32_t max)
{
    return value < min ? min : value > max ? max : value;
}

static inline int8_t thimble_saturate_s8(int32_t value)
{
#if defined(__ARM_FEATURE_SAT)
    int32_t saturated;
    __asm__("ssat %0, #8, %1" : "=r"(saturated) : "r"(value));
    return (int8_t)saturated;
#else
    return (int8_t)thimble_clamp(value, INT8_MIN, INT8_MAX);
#endif
}

#endif

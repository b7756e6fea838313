/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_s8.h"

int8_t thimble_requantize_once_s8(
    int32_t sum, int32_t multiplier, int32_t low, int32_t code, const thimble_requant *requant)
{
    if (code >= 0) {
        const int32_t rounding = thimble_rounding(requant, code);
        const int32_t value = thimble_requantize_once_fast(sum, multiplier, code, rounding);
        return (int8_t)thimble_clamp_sum(value, requant->activation_min, requant->activation_max);
    }
    const int32_t right = 31 - (code + THIMBLE_SHIFT_BIAS);
    const int64_t half = (int64_t)1 << (right - 1);
    const int64_t value = ((int64_t)sum * multiplier + ((int64_t)sum * low >> 22) + half) >> right;
    const int32_t bottom = requant->activation_min - requant->output_offset;
    const int32_t top = requant->activation_max - requant->output_offset;
    const int32_t clamped = value < bottom ? bottom : (value > top ? top : (int32_t)value);
    return (int8_t)(clamped + requant->output_offset);
}

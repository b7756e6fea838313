#include "thimble_dsp.h"

int8_t
thimble_requantize_once_s8(int32_t sum, int32_t multiplier, int32_t shift, const thimble_requant *requant)
{
    if (requant->form == THIMBLE_REQUANT_GENERAL) {
        const int32_t low = requant->activation_min - requant->output_offset;
        const int32_t top = requant->activation_max - requant->output_offset;
        const int64_t half = (int64_t)1 << (30 - shift);
        const int64_t value = ((int64_t)sum * multiplier + half) >> (31 - shift);
        const int32_t clamped = value < low ? low : (value > top ? top : (int32_t)value);
        return (int8_t)(clamped + requant->output_offset);
    }
    const int32_t rounding = thimble_rounding(requant, shift);
    const int32_t value = thimble_requantize_once_fast(sum, multiplier, shift, rounding);
    return (int8_t)thimble_clamp(value, requant->activation_min, requant->activation_max);
}

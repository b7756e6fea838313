#include "thimble_dsp.h"

int8_t thimble_requantize_s8(int32_t sum, int32_t multiplier, int32_t code, const thimble_requant *requant)
{
    if (code >= 0) {
        const int32_t rounding = thimble_rounding(requant, code);
        const int32_t value = thimble_requantize_fast(sum, multiplier, code, rounding);
        return (int8_t)thimble_clamp(value, requant->activation_min, requant->activation_max);
    }
    if (code >= THIMBLE_ONCE_RIGHT || code < THIMBLE_ONCE_LEFT) {
        const int32_t left = code >= THIMBLE_ONCE_RIGHT ? code + 1 : code + 129;
        return thimble_requantize_once_s8(sum, multiplier, 0, left - THIMBLE_SHIFT_BIAS, requant);
    }
    const int32_t shift = code + THIMBLE_SHIFT_BIAS;
    const int32_t shifted = (int32_t)((uint32_t)sum << (shift > 0 ? shift : 0));
    const int64_t product = (int64_t)shifted * multiplier + ((int64_t)1 << 30);
    const int32_t high = (int32_t)(product >> 31);
    const int32_t right = shift > 0 ? 0 : -shift;
    const int32_t mask = (int32_t)(((uint32_t)1 << right) - 1U);
    const int32_t threshold = (mask >> 1) + (high < 0 ? 1 : 0);
    const int32_t scaled = (high >> right) + ((high & mask) > threshold ? 1 : 0);
    const int32_t low = requant->activation_min - requant->output_offset;
    const int32_t top = requant->activation_max - requant->output_offset;
    return (int8_t)(thimble_clamp(scaled, low, top) + requant->output_offset);
}

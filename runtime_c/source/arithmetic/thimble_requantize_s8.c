/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_s8.h"

/* sum * factor rounded to float and then to an integer, halves to even, within +-512. */
static int32_t float_scaled(int32_t sum, int32_t factor_bits)
{
    float factor;
    (void)memcpy(&factor, &factor_bits, sizeof(factor));
#if THIMBLE_FPU
    float product;
    int32_t whole;
    __asm("vcvt.f32.s32 %0, %1" : "=t"(product) : "t"(sum));
    __asm("vmul.f32 %0, %1, %2" : "=t"(product) : "t"(product), "t"(factor));
    __asm("vcvtr.s32.f32 %0, %1" : "=t"(whole) : "t"(product)); /* FPSCR's rounding: to nearest, even */
    return thimble_clamp_sum(whole, -512, 512);
#else
    volatile float rounded = (float)sum * factor; /* volatile: no fused multiply-add with what follows */
    const float product = rounded;
    if (product >= 512.0F || product <= -512.0F) {
        return product > 0.0F ? 512 : -512;
    }
    const int32_t whole = (int32_t)product;
    const float rest = product - (float)whole;
    const int32_t odd = whole & 1;
    if (rest > 0.5F || (rest >= 0.5F && odd)) {
        return whole + 1;
    }
    return rest < -0.5F || (rest <= -0.5F && odd) ? whole - 1 : whole;
#endif
}

int8_t thimble_requantize_s8(int32_t sum, int32_t multiplier, int32_t code, const thimble_requant *requant)
{
    if (code >= 0) {
        const int32_t rounding = thimble_rounding(requant, code);
        const int32_t value = thimble_requantize_fast(sum, multiplier, code, rounding);
        return (int8_t)thimble_clamp_sum(value, requant->activation_min, requant->activation_max);
    }
    if (code == THIMBLE_SHIFT_FLOAT) {
        const int32_t value = float_scaled(sum, multiplier) + requant->output_offset;
        return (int8_t)thimble_clamp_sum(value, requant->activation_min, requant->activation_max);
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
    return (int8_t)(thimble_clamp_sum(scaled, low, top) + requant->output_offset);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "thimble_elementwise.h"
#include "thimble_saturate.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

static inline int32_t high_word(int32_t a, int32_t b, const thimble_mul_params *p)
{
    const uint32_t left = (uint32_t)a * (uint32_t)p->factor_1 + (uint32_t)p->offset_1;
    const int32_t product = (int32_t)(left * (uint32_t)(b + p->offset_2)); /* wraps, as TFLite's */
    return (int32_t)(((int64_t)product * p->multiplier) >> 32);
}

static inline int32_t quotient(int32_t a, int32_t b, const thimble_mul_params *p, bool one_bias)
{
    const int32_t high = high_word(a, b, p);
    if (one_bias) {
        return (high + p->bias) >> p->shift;
    }
    return (high + ((high >> 31) & p->negative_bias) + p->bias) >> p->shift;
}

#if defined(__ARM_FEATURE_MVE)
static void
mul_vector(const int8_t *a, const int8_t *b, int8_t *output, int32_t size, const thimble_mul_params *p)
{
    const int32x4_t min = vdupq_n_s32(p->min);
    const int32x4_t max = vdupq_n_s32(p->max);
    const int32x4_t multiplier = vdupq_n_s32(p->multiplier);
    const int32x4_t negative_bias = vdupq_n_s32(p->negative_bias);
    for (; size > 0; size -= 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)size);
        const int32x4_t left = vaddq_n_s32(vmulq_n_s32(vldrbq_z_s32(a, lanes), p->factor_1), p->offset_1);
        const int32x4_t right = vaddq_n_s32(vldrbq_z_s32(b, lanes), p->offset_2);
        int32x4_t sum = vmulhq_s32(vmulq_s32(left, right), multiplier);
        sum = vaddq_s32(sum, vandq_s32(vshrq_n_s32(sum, 31), negative_bias));
        sum = vshlq_r_s32(vaddq_n_s32(sum, p->bias), -p->shift);
        vstrbq_p_s32(output, vminq_s32(vmaxq_s32(sum, min), max), lanes);
        a += 4;
        b += 4;
        output += 4;
    }
}
#else
/* Both operands advance, and the output takes the whole int8 range. */
__attribute__((always_inline)) static inline void full_range(const int8_t *a,
                                                             const int8_t *b,
                                                             int8_t *output,
                                                             int32_t size,
                                                             const thimble_mul_params *params,
                                                             bool one_bias)
{
    const thimble_mul_params p = *params;
    for (; size >= 4; size -= 4) {
        output[0] = thimble_saturate_s8(quotient(a[0], b[0], &p, one_bias));
        output[1] = thimble_saturate_s8(quotient(a[1], b[1], &p, one_bias));
        output[2] = thimble_saturate_s8(quotient(a[2], b[2], &p, one_bias));
        output[3] = thimble_saturate_s8(quotient(a[3], b[3], &p, one_bias));
        a += 4;
        b += 4;
        output += 4;
    }
    for (; size > 0; size--) {
        *output++ = thimble_saturate_s8(quotient(*a++, *b++, &p, one_bias));
    }
}
#endif

/*
 * The product of two int8 operands less their zero points, requantized (TFLite
 * `reference_integer_ops::Mul`). TFLite's two roundings are merged into the bias and, where
 * products of both signs occur, the negative bias.
 */
void thimble_mul_s8(const int8_t *input_1,
                    int32_t step_1,
                    const int8_t *input_2,
                    int32_t step_2,
                    int8_t *output,
                    int32_t size,
                    const thimble_mul_params *params)
{
    const thimble_mul_params p = *params;
    if (step_1 == 1 && step_2 == 1) {
#if defined(__ARM_FEATURE_MVE)
        mul_vector(input_1, input_2, output, size, params);
        return;
#else
        if (p.min == INT8_MIN && p.max == INT8_MAX) {
            if (p.negative_bias == 0) {
                full_range(input_1, input_2, output, size, params, true);
            } else {
                full_range(input_1, input_2, output, size, params, false);
            }
            return;
        }
#endif
    }
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)thimble_clamp(quotient(*input_1, *input_2, &p, false), p.min, p.max);
        input_1 += step_1;
        input_2 += step_2;
    }
}

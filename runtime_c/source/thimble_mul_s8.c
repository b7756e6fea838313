/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"
#include "thimble_saturate.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

static inline int32_t product(int32_t a, int32_t b, const thimble_mul_params *p)
{
    return (a * p->factor_1 + p->offset_1) * (b + p->offset_2);
}

static inline int32_t truncated(int32_t a, int32_t b, const thimble_mul_params *p)
{
    const int32_t high = (int32_t)(((int64_t)product(a, b, p) * p->multiplier) >> 32);
    return (high + p->bias) >> p->shift;
}

static inline int32_t rounded(int32_t a, int32_t b, const thimble_mul_params *p)
{
    const int64_t half = (int64_t)1 << 31;
    const int32_t high = (int32_t)(((int64_t)product(a, b, p) * p->multiplier + half) >> 32);
    return (high + ((high >> 31) & p->round_away) + p->bias) >> p->shift;
}

#if defined(__ARM_FEATURE_MVE)
static void
truncated_vector(const int8_t *a, const int8_t *b, int8_t *output, int32_t size, const thimble_mul_params *p)
{
    const int32x4_t min = vdupq_n_s32(p->min);
    const int32x4_t max = vdupq_n_s32(p->max);
    const int32x4_t multiplier = vdupq_n_s32(p->multiplier);
    for (; size > 0; size -= 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)size);
        const int32x4_t left = vmlasq_n_s32(vldrbq_z_s32(a, lanes), vdupq_n_s32(p->factor_1), p->offset_1);
        const int32x4_t right = vaddq_n_s32(vldrbq_z_s32(b, lanes), p->offset_2);
        int32x4_t sum = vmulhq_s32(vmulq_s32(left, right), multiplier);
        sum = vshlq_r_s32(vaddq_n_s32(sum, p->bias), -p->shift);
        vstrbq_p_s32(output, vminq_s32(vmaxq_s32(sum, min), max), lanes);
        a += 4;
        b += 4;
        output += 4;
    }
}
#else
/* Both operands advance, and the output takes the whole int8 range. */
static void truncated_full_range(
    const int8_t *a, const int8_t *b, int8_t *output, int32_t size, const thimble_mul_params *params)
{
    const thimble_mul_params p = *params;
    for (; size >= 4; size -= 4) {
        output[0] = thimble_saturate_s8(truncated(a[0], b[0], &p));
        output[1] = thimble_saturate_s8(truncated(a[1], b[1], &p));
        output[2] = thimble_saturate_s8(truncated(a[2], b[2], &p));
        output[3] = thimble_saturate_s8(truncated(a[3], b[3], &p));
        a += 4;
        b += 4;
        output += 4;
    }
    for (; size > 0; size--) {
        *output++ = thimble_saturate_s8(truncated(*a++, *b++, &p));
    }
}
#endif

/*
 * The product of two int8 operands less their zero points, requantised (TFLite
 * `reference_integer_ops::Mul`).
 *
 * TFLite rounds twice. The compiler searches a bias for which plain truncation gives the same byte
 * for all 65,536 pairs of operands, and proves it by trying them all; where none does, `round` asks
 * for TFLite's own steps.
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
    if (p.round) {
        for (int32_t i = 0; i < size; i++) {
            output[i] = (int8_t)thimble_clamp(rounded(*input_1, *input_2, &p), p.min, p.max);
            input_1 += step_1;
            input_2 += step_2;
        }
        return;
    }
    if (step_1 == 1 && step_2 == 1) {
#if defined(__ARM_FEATURE_MVE)
        truncated_vector(input_1, input_2, output, size, params);
        return;
#else
        if (p.min == INT8_MIN && p.max == INT8_MAX) {
            truncated_full_range(input_1, input_2, output, size, params);
            return;
        }
#endif
    }
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)thimble_clamp(truncated(*input_1, *input_2, &p), p.min, p.max);
        input_1 += step_1;
        input_2 += step_2;
    }
}

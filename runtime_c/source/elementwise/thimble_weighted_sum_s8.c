/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>

#include "thimble_elementwise.h"
#include "thimble_saturate.h"

#if defined(__ARM_FEATURE_MVE)
#include <arm_mve.h>
#endif

static inline int32_t quotient(int32_t a, int32_t b, const thimble_weighted_sum_params *p, bool one_bias)
{
    const int32_t sum = (p->bias + p->factor_1 * a) + p->factor_2 * b;
    if (one_bias) {
        return sum >> p->shift;
    }
    return (sum + ((sum >> 31) & p->negative_bias) + p->rounding) >> p->shift;
}

#if defined(__ARM_FEATURE_MVE)
typedef struct {
    int32x4_t factor_1, negative_bias, min, max;
    int32_t factor_2, bias, rounding, shift;
    bool one_bias;
} weighted_sum_lanes;

/* thimble_weighted_sum_s8 of four pairs; with `one_bias` the rounding is in the bias. */
__attribute__((always_inline)) static inline int32x4_t
four_sums(int32x4_t a, int32x4_t b, const weighted_sum_lanes *p)
{
    int32x4_t sum = vmlaq_n_s32(vmlasq_n_s32(a, p->factor_1, p->bias), b, p->factor_2);
    if (!p->one_bias) {
        sum = vaddq_s32(sum, vandq_s32(vshrq_n_s32(sum, 31), p->negative_bias));
        sum = vaddq_n_s32(sum, p->rounding);
    }
    return vminq_s32(vmaxq_s32(vshlq_r_s32(sum, -p->shift), p->min), p->max);
}

__attribute__((always_inline)) static inline void sum_vectors(
    const int8_t *a, const int8_t *b, int8_t *output, int32_t size, weighted_sum_lanes p, bool one_bias)
{
    p.one_bias = one_bias;
    p.bias += one_bias ? p.rounding : 0;
    for (; size >= 8; size -= 8, a += 8, b += 8, output += 8) {
        const int32x4_t first = four_sums(vldrbq_s32(a), vldrbq_s32(b), &p);
        const int32x4_t second = four_sums(vldrbq_s32(a + 4), vldrbq_s32(b + 4), &p);
        vstrbq_s32(output, first);
        vstrbq_s32(output + 4, second);
    }
    for (; size > 0; size -= 4, a += 4, b += 4, output += 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)size);
        vstrbq_p_s32(output, four_sums(vldrbq_z_s32(a, lanes), vldrbq_z_s32(b, lanes), &p), lanes);
    }
}

static void weighted_sum_vector(
    const int8_t *a, const int8_t *b, int8_t *output, int32_t size, const thimble_weighted_sum_params *p)
{
    const weighted_sum_lanes lanes = {
        vdupq_n_s32(p->factor_1),
        vdupq_n_s32(p->negative_bias),
        vdupq_n_s32(p->min),
        vdupq_n_s32(p->max),
        p->factor_2,
        p->bias,
        p->rounding,
        p->shift,
        false,
    };
    if (p->negative_bias) {
        sum_vectors(a, b, output, size, lanes, false);
    } else {
        sum_vectors(a, b, output, size, lanes, true);
    }
}
#else
/* Both operands advance, and the output takes the whole int8 range. */
__attribute__((always_inline)) static inline void full_range(const int8_t *a,
                                                             const int8_t *b,
                                                             int8_t *output,
                                                             int32_t size,
                                                             const thimble_weighted_sum_params *params,
                                                             bool one_bias)
{
    const thimble_weighted_sum_params p = *params;
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
 * A weighted sum of two int8 operands in one multiply-accumulate each.
 *
 * TFLite scales the operands of an addition in three roundings. The compiler searches factors for
 * which this single rounding gives the same byte for all 65,536 pairs of operands, and proves it by
 * trying them all (the negative bias takes care of halves, which TFLite rounds away from zero); where
 * it finds none it calls thimble_add_s8 instead.
 */
void thimble_weighted_sum_s8(const int8_t *input_1,
                             int32_t step_1,
                             const int8_t *input_2,
                             int32_t step_2,
                             int8_t *output,
                             int32_t size,
                             const thimble_weighted_sum_params *params)
{
    if (step_1 == 1 && step_2 == 1) {
#if defined(__ARM_FEATURE_MVE)
        weighted_sum_vector(input_1, input_2, output, size, params);
        return;
#else
        if (params->min == INT8_MIN && params->max == INT8_MAX) {
            if (params->negative_bias == 0 && params->rounding == 0) {
                full_range(input_1, input_2, output, size, params, true);
            } else {
                full_range(input_1, input_2, output, size, params, false);
            }
            return;
        }
#endif
    }
    const thimble_weighted_sum_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)thimble_clamp(quotient(*input_1, *input_2, &p, false), p.min, p.max);
        input_1 += step_1;
        input_2 += step_2;
    }
}

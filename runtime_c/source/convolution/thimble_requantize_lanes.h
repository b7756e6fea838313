/* SPDX-License-Identifier: Apache-2.0 */
/* int32 sums of four channels at once to int8. */
#ifndef THIMBLE_REQUANTIZE_LANES_H
#define THIMBLE_REQUANTIZE_LANES_H

#include "thimble_lanes.h"
#include "thimble_requantize_s8.h"

/* What all channels of an operator share. */
typedef struct {
    const thimble_requant *requant;
#if THIMBLE_MVE
    int32x4_t twice; /* 2 * output_offset + 1 */
    int32x4_t low, top;
#endif
} thimble_lane_ending;

static inline thimble_lane_ending thimble_ending_of(const thimble_requant *requant)
{
    const thimble_lane_ending ending = {
        requant,
#if THIMBLE_MVE
        vdupq_n_s32(2 * requant->output_offset + 1),
        vdupq_n_s32(requant->activation_min),
        vdupq_n_s32(requant->activation_max),
#endif
    };
    return ending;
}

#if THIMBLE_MVE
static inline int32x4_t thimble_held(int32x4_t value, const thimble_lane_ending *ending)
{
    return vminq_s32(vmaxq_s32(value, ending->low), ending->top);
}

/* thimble_requantize_fast of four sums, held in the activation's range. `minus`: ~code. */
static inline int32x4_t thimble_fast_lanes(int32x4_t sums,
                                           int32x4_t multiplier,
                                           int32x4_t rounding,
                                           int32x4_t minus,
                                           const thimble_lane_ending *ending)
{
    const int32x4_t signs = vaddq_s32(vshrq_n_s32(sums, 31), rounding);
    const int32x4_t high = vaddq_s32(vqrdmulhq_s32(sums, multiplier), signs);
    return thimble_held(vshlq_s32(high, minus), ending);
}

#if (__ARM_FEATURE_MVE & 2)
/* Four sums times float factors, rounded to float and then to the nearest integer, halves to even. */
static inline int32x4_t
thimble_float_lanes(int32x4_t sums, int32x4_t factors, const thimble_lane_ending *ending)
{
    const float32x4_t scaled = vmulq_f32(vcvtq_f32_s32(sums), vreinterpretq_f32_s32(factors));
    return thimble_held(vqaddq_n_s32(vcvtnq_s32_f32(scaled), ending->requant->output_offset), ending);
}
#endif
#endif

/* Outputs of `count` channels, at most four, for two pixels, sums[0..3] and sums[4..7]; the first is written
 * first. `scaling`: four multipliers, then four int8 shift codes in one word. */
void thimble_put_any_lanes_s8(const int32_t *sums,
                              const int32_t *scaling,
                              int32_t count,
                              const thimble_requant *requant,
                              int8_t *output_0,
                              int8_t *output_1);

/* The same, quicker where all codes are at least 0, or all THIMBLE_SHIFT_FLOAT. */
static inline void thimble_put_lanes(const int32_t *sums,
                                     const int32_t *scaling,
                                     int32_t count,
                                     const thimble_lane_ending *ending,
                                     int8_t *output_0,
                                     int8_t *output_1)
{
#if THIMBLE_MVE
    if (__builtin_expect(count == 4 && ((uint32_t)scaling[4] & 0x80808080U) == 0, 1)) {
        const int32x4_t multiplier = vldrwq_s32(scaling), code = vldrbq_s32((const int8_t *)(scaling + 4));
        const int32x4_t rounding = vshlq_s32(ending->twice, code), minus = vmvnq_s32(code);
        const int32x4_t zero = thimble_fast_lanes(vldrwq_s32(sums), multiplier, rounding, minus, ending);
        const int32x4_t one = thimble_fast_lanes(vldrwq_s32(sums + 4), multiplier, rounding, minus, ending);
        vstrbq_s32(output_0, zero);
        vstrbq_s32(output_1, one);
        return;
    }
#if (__ARM_FEATURE_MVE & 2)
    if (count == 4 && (uint32_t)scaling[4] == 0xFFFFFFFFU) {
        const int32x4_t factors = vldrwq_s32(scaling);
        const int32x4_t zero = thimble_float_lanes(vldrwq_s32(sums), factors, ending);
        const int32x4_t one = thimble_float_lanes(vldrwq_s32(sums + 4), factors, ending);
        vstrbq_s32(output_0, zero);
        vstrbq_s32(output_1, one);
        return;
    }
#endif
#endif
    thimble_put_any_lanes_s8(sums, scaling, count, ending->requant, output_0, output_1);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_lanes.h"

#if THIMBLE_MVE
static inline int32x4_t held(int32x4_t value, int32x4_t low, int32x4_t top)
{
    return vminq_s32(vmaxq_s32(value, low), top);
}

/* thimble_requantize_merged_fast of the sums. */
static void
put_once(const int32_t *sums, int32_t pixels, const int32_t *scaling, int8_t *output, int32_t step)
{
    const int32x4_t bias = vldrwq_s32(scaling), multiplier = vldrwq_s32(scaling + 4);
    const int32x4_t rounding = vldrwq_s32(scaling + 8);
    const int32x4_t left = vldrbq_s32((const int8_t *)(scaling + 12));
    for (; pixels > 0; pixels--, sums += 4, output += step) {
        const int32x4_t high = vmulhq_s32(vaddq_s32(vldrwq_s32(sums), bias), multiplier);
        vstrbq_s32(output, vshrq_n_s32(vqshlq_s32(vaddq_s32(high, rounding), left), 24));
    }
}

/* thimble_requantize_fast of the sums, held in the activation's range. */
static void put_fast(const int32_t *sums,
                     int32_t pixels,
                     const int32_t *scaling,
                     const thimble_requant *requant,
                     int8_t *output,
                     int32_t step)
{
    const int32x4_t bias = vldrwq_s32(scaling), multiplier = vldrwq_s32(scaling + 4);
    const int32x4_t rounding = vldrwq_s32(scaling + 8);
    const int32x4_t code = vldrbq_s32((const int8_t *)(scaling + 12));
    const int32x4_t minus = vsubq_n_s32(code, THIMBLE_LANE_FAST + THIMBLE_LANE_TOP + 1);
    const int32x4_t low = vdupq_n_s32(requant->activation_min), top = vdupq_n_s32(requant->activation_max);
    for (; pixels > 0; pixels--, sums += 4, output += step) {
        const int32x4_t sum = vaddq_s32(vldrwq_s32(sums), bias);
        const int32x4_t signs = vaddq_s32(vshrq_n_s32(sum, 31), rounding);
        const int32x4_t high = vaddq_s32(vqrdmulhq_s32(sum, multiplier), signs);
        vstrbq_s32(output, held(vshlq_s32(high, minus), low, top));
    }
}

#if (__ARM_FEATURE_MVE & 2)
/* Sums times float factors, rounded to float and then to the nearest integer, halves to even. */
static void put_float(const int32_t *sums,
                      int32_t pixels,
                      const int32_t *scaling,
                      const thimble_requant *requant,
                      int8_t *output,
                      int32_t step)
{
    const int32x4_t bias = vldrwq_s32(scaling);
    const float32x4_t factors = vreinterpretq_f32_s32(vldrwq_s32(scaling + 4));
    const int32x4_t low = vdupq_n_s32(requant->activation_min), top = vdupq_n_s32(requant->activation_max);
    const int32_t offset = requant->output_offset;
    for (; pixels > 0; pixels--, sums += 4, output += step) {
        const float32x4_t sum = vcvtq_f32_s32(vaddq_s32(vldrwq_s32(sums), bias));
        const int32x4_t scaled = vcvtnq_s32_f32(vmulq_f32(sum, factors));
        vstrbq_s32(output, held(vqaddq_n_s32(scaled, offset), low, top));
    }
}
#endif

/* thimble_requantize_s8 with any codes but THIMBLE_SHIFT_FLOAT. */
static void put_shifted(const int32_t *sums,
                        int32_t pixels,
                        const int32_t *scaling,
                        const thimble_requant *requant,
                        int8_t *output,
                        int32_t step)
{
    const int32x4_t zero = vdupq_n_s32(0), bias = vldrwq_s32(scaling), multiplier = vldrwq_s32(scaling + 4);
    const int32x4_t code = vldrbq_s32((const int8_t *)(scaling + 12));
    const int32x4_t biased = vaddq_n_s32(code, THIMBLE_SHIFT_BIAS);
    const int32x4_t minus = vsubq_n_s32(code, THIMBLE_LANE_FAST + THIMBLE_LANE_TOP + 1);
    const int32x4_t shift = vpselq_s32(minus, biased, vcmpgeq_n_s32(code, 0));
    const int32x4_t right = vminq_s32(shift, zero), left = vmaxq_s32(shift, zero);
    const int32x4_t low = vdupq_n_s32(requant->activation_min), top = vdupq_n_s32(requant->activation_max);
    for (; pixels > 0; pixels--, sums += 4, output += step) {
        const int32x4_t sum = vshlq_s32(vaddq_s32(vldrwq_s32(sums), bias), left);
        const int32x4_t high = vqrdmulhq_s32(sum, multiplier);
        /* Halves away from zero: one less where a negative value is shifted. */
        const int32x4_t less = vshrq_n_s32(vandq_s32(high, right), 31);
        const int32x4_t scaled = vrshlq_s32(vqaddq_s32(high, less), right);
        vstrbq_s32(output, held(vqaddq_n_s32(scaled, requant->output_offset), low, top));
    }
}
#endif

static int8_t
put_one(int32_t sum, const int32_t *scaling, int32_t lane, int32_t code, const thimble_requant *requant)
{
    sum = thimble_add(sum, scaling[lane]);
    if (code >= 0 && code <= THIMBLE_LANE_TOP) {
        const int32_t shift = THIMBLE_LANE_TOP - code;
        return (int8_t)thimble_requantize_merged_fast(sum, scaling[4 + lane], shift, scaling[8 + lane]);
    }
    const int32_t shift = code < 0 ? code : THIMBLE_LANE_FAST + THIMBLE_LANE_TOP - code;
    return thimble_requantize_s8(sum, scaling[4 + lane], shift, requant);
}

void thimble_put_any_lanes_s8(const int32_t *sums,
                              int32_t pixels,
                              const int32_t *scaling,
                              const thimble_requant *requant,
                              int8_t *output,
                              int32_t step)
{
    const uint32_t codes = (uint32_t)scaling[12];
#if THIMBLE_MVE
    if (thimble_all_once(scaling)) {
        put_once(sums, pixels, scaling, output, step);
        return;
    }
    if (thimble_all_fast(scaling)) {
        put_fast(sums, pixels, scaling, requant, output, step);
        return;
    }
#if (__ARM_FEATURE_MVE & 2)
    if (thimble_all_float(scaling)) {
        put_float(sums, pixels, scaling, requant, output, step);
        return;
    }
#endif
    if (!thimble_all_once(scaling) &&
        ((~codes - 0x01010101U) & codes & 0x80808080U) == 0) { /* no byte is THIMBLE_SHIFT_FLOAT */
        put_shifted(sums, pixels, scaling, requant, output, step);
        return;
    }
#endif
    for (; pixels > 0; pixels--, sums += 4, output += step) {
        for (int32_t lane = 0; lane < 4; lane++) {
            const int32_t code = (int8_t)(uint8_t)(codes >> (8 * lane));
            output[lane] = put_one(sums[lane], scaling, lane, code, requant);
        }
    }
}

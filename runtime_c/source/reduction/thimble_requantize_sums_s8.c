/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lanes.h"
#include "thimble_requantize_s8.h"
#include "thimble_sums.h"

#if THIMBLE_MVE
/* How four sums are scaled. */
typedef struct {
    int32x4_t multiplier, left, right;
} four_scales;

static inline four_scales scales_of(int32x4_t multiplier, int32x4_t code)
{
    const int32x4_t zero = vdupq_n_s32(0), biased = vaddq_n_s32(code, THIMBLE_SHIFT_BIAS);
    const int32x4_t down = vsubq_s32(vdupq_n_s32(-1), code);
    const int32x4_t shift = vpselq_s32(down, biased, vcmpgeq_n_s32(code, 0));
    const four_scales found = {multiplier, vmaxq_s32(shift, zero), vminq_s32(shift, zero)};
    return found;
}

/* thimble_requantize_s8 of up to four sums, of any codes but THIMBLE_SHIFT_FLOAT. */
static inline void put_four(const int32_t *sums,
                            int32_t count,
                            int32_t bias,
                            const four_scales *scales,
                            const thimble_requant *requant,
                            int8_t *output)
{
    const mve_pred16_t lanes = vctp32q((uint32_t)count);
    const int32x4_t sum = vshlq_s32(vaddq_n_s32(vldrwq_z_s32(sums, lanes), bias), scales->left);
    const int32x4_t high = vqrdmulhq_s32(sum, scales->multiplier);
    /* Halves away from zero: one less where a negative value is shifted. */
    const int32x4_t less = vshrq_n_s32(vandq_s32(high, scales->right), 31);
    const int32x4_t scaled = vrshlq_s32(vqaddq_s32(high, less), scales->right);
    const int32x4_t value = vqaddq_n_s32(scaled, requant->output_offset);
    const int32x4_t low = vdupq_n_s32(requant->activation_min), top = vdupq_n_s32(requant->activation_max);
    vstrbq_p_s32(output, vminq_s32(vmaxq_s32(value, low), top), lanes);
}

static void put_vectors(int32_t pixels,
                        int32_t channels,
                        int32_t bias,
                        const thimble_requant *requant,
                        const int32_t *sums,
                        const int32_t *parameters,
                        int8_t *output)
{
    if (channels == 1) {
        const four_scales scales = scales_of(vdupq_n_s32(parameters[0]), vdupq_n_s32(parameters[1]));
        for (; pixels > 0; pixels -= 4, sums += 4, output += 4) {
            put_four(sums, pixels, bias, &scales, requant, output);
        }
        return;
    }
    const uint32x4_t places = vshlq_n_u32(vidupq_n_u32(0, 1), 1);
    for (; pixels > 0; pixels--) {
        const int32_t *at = parameters;
        for (int32_t left = channels; left > 0; left -= 4, at += 8) {
            const int32_t count = left < 4 ? left : 4;
            const mve_pred16_t lanes = vctp32q((uint32_t)left);
            const int32x4_t multiplier = vldrwq_gather_shifted_offset_z_s32(at, places, lanes);
            const int32x4_t code = vldrwq_gather_shifted_offset_z_s32(at + 1, places, lanes);
            const four_scales scales = scales_of(multiplier, code);
            put_four(sums, count, bias, &scales, requant, output);
            sums += count;
            output += count;
        }
    }
}

static int32_t in_float(const int32_t *parameters, int32_t channels)
{
    int32_t found = 0;
    for (; channels > 0; channels--, parameters += 2) {
        found |= parameters[1] == THIMBLE_SHIFT_FLOAT;
    }
    return found;
}
#endif

void thimble_requantize_sums_s8(int32_t pixels,
                                int32_t channels,
                                int32_t bias,
                                const thimble_requant *requant,
                                const int32_t *sums,
                                const int32_t *parameters,
                                int8_t *output)
{
#if THIMBLE_MVE
    if (!in_float(parameters, channels)) {
        put_vectors(pixels, channels, bias, requant, sums, parameters, output);
        return;
    }
#endif
    const int32_t narrow = thimble_narrow(requant);
    for (; pixels > 0; pixels--) {
        const int32_t *at = parameters;
        for (int32_t channel = 0; channel < channels; channel++, at += 2) {
            const int32_t sum = thimble_add(*sums++, bias);
            if (at[1] >= 0 && !narrow) {
                const int32_t rounding = thimble_rounding(requant, at[1]);
                *output++ = (int8_t)thimble_requantize_fast(sum, at[0], at[1], rounding);
            } else {
                *output++ = thimble_requantize_s8(sum, at[0], at[1], requant);
            }
        }
    }
}

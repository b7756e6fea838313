/* SPDX-License-Identifier: Apache-2.0 */
/* int32 sums of four channels at once to int8. */
#ifndef THIMBLE_REQUANTIZE_LANES_H
#define THIMBLE_REQUANTIZE_LANES_H

#include "thimble_lanes.h"
#include "thimble_requantize_s8.h"

/* Words of the scaling of four channels: biases, multipliers, rounding terms, and a word of int8 codes.
 *
 * A code of 0 to 23 says that a sum is rounded once, and that the activation is int8's own range
 * (thimble_requantize_merged_fast). That is so of all four channels or of none. One of 32 to 55 says that it
 * is scaled by thimble_requantize_fast. Either is THIMBLE_LANE_TOP less the shift, which takes the lowest bit
 * of a value to bit 24, so that what does not fit int8 is saturated there. Others are those of
 * thimble_requantize_s8. */
#define THIMBLE_LANE_SCALING 13
#define THIMBLE_LANE_TOP 23
#define THIMBLE_LANE_FAST 32

static inline int32_t thimble_all_once(const int32_t *scaling)
{
    return ((uint32_t)scaling[12] & 0xA0A0A0A0U) == 0;
}

static inline int32_t thimble_all_fast(const int32_t *scaling)
{
    return ((uint32_t)scaling[12] & 0xA0A0A0A0U) == 0x20202020U;
}

/* Outputs of `pixels` pixels, `step` bytes apart, of which four sums without their biases follow each other.
 */
void thimble_put_any_lanes_s8(const int32_t *sums,
                              int32_t pixels,
                              const int32_t *scaling,
                              const thimble_requant *requant,
                              int8_t *output,
                              int32_t step);

#if THIMBLE_MVE
static inline int32x4_t
thimble_once_lanes(int32x4_t sums, int32x4_t bias, int32x4_t multiplier, int32x4_t rounding, int32x4_t left)
{
    const int32x4_t high = vmulhq_s32(vaddq_s32(sums, bias), multiplier);
    return vshrq_n_s32(vqshlq_s32(vaddq_s32(high, rounding), left), 24);
}
#endif

/* The same as thimble_put_any_lanes_s8, quicker where sums are rounded once. */
static inline void thimble_put_lanes(const int32_t *sums,
                                     int32_t pixels,
                                     const int32_t *scaling,
                                     const thimble_requant *requant,
                                     int8_t *output,
                                     int32_t step)
{
#if THIMBLE_MVE
    if (thimble_all_once(scaling)) {
        const int32x4_t bias = vldrwq_s32(scaling), multiplier = vldrwq_s32(scaling + 4);
        const int32x4_t rounding = vldrwq_s32(scaling + 8);
        const int32x4_t left = vldrbq_s32((const int8_t *)(scaling + 12));
        for (; pixels > 1; pixels -= 2, sums += 8, output += 2 * step) {
            const int32x4_t zero = vldrwq_s32(sums), one = vldrwq_s32(sums + 4);
            vstrbq_s32(output, thimble_once_lanes(zero, bias, multiplier, rounding, left));
            vstrbq_s32(output + step, thimble_once_lanes(one, bias, multiplier, rounding, left));
        }
        if (pixels) {
            const int32x4_t last = vldrwq_s32(sums);
            vstrbq_s32(output, thimble_once_lanes(last, bias, multiplier, rounding, left));
        }
        return;
    }
#endif
    thimble_put_any_lanes_s8(sums, pixels, scaling, requant, output, step);
}

#endif

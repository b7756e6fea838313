/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_requantize_lanes.h"

#if THIMBLE_MVE
/* thimble_requantize_s8 of four sums with any codes but THIMBLE_SHIFT_FLOAT. */
static inline int32x4_t
any_lanes(int32x4_t sums, int32x4_t multiplier, int32x4_t code, const thimble_lane_ending *ending)
{
    const int32x4_t zero = vdupq_n_s32(0);
    const int32x4_t biased = vaddq_n_s32(code, THIMBLE_SHIFT_BIAS);
    const int32x4_t shift = vpselq_s32(vmvnq_s32(code), biased, vcmpgeq_n_s32(code, 0));
    const int32x4_t right = vminq_s32(shift, zero);
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(sums, vmaxq_s32(shift, zero)), multiplier);
    /* Halves away from zero: one less where a negative value is shifted. */
    const int32x4_t less = vshrq_n_s32(vandq_s32(high, right), 31);
    const int32x4_t scaled = vrshlq_s32(vqaddq_s32(high, less), right);
    return thimble_held(vqaddq_n_s32(scaled, ending->requant->output_offset), ending);
}
#endif

void thimble_put_any_lanes_s8(const int32_t *sums,
                              const int32_t *scaling,
                              int32_t count,
                              const thimble_requant *requant,
                              int8_t *output_0,
                              int8_t *output_1)
{
    uint32_t codes = (uint32_t)scaling[4];
#if THIMBLE_MVE
    if (count == 4) {
        const int32x4_t zero = vldrwq_s32(sums), one = vldrwq_s32(sums + 4);
        const int32x4_t multiplier = vldrwq_s32(scaling);
        const thimble_lane_ending ending = thimble_ending_of(requant);
        const int32x4_t code = vldrbq_s32((const int8_t *)(scaling + 4));
        if (((~codes - 0x01010101U) & codes & 0x80808080U) == 0) { /* no byte is THIMBLE_SHIFT_FLOAT */
            vstrbq_s32(output_0, any_lanes(zero, multiplier, code, &ending));
            vstrbq_s32(output_1, any_lanes(one, multiplier, code, &ending));
            return;
        }
    }
#endif
    for (int32_t i = 0; i < count; i++, codes >>= 8) {
        const int32_t code = (int8_t)(uint8_t)codes;
        output_0[i] = thimble_requantize_s8(sums[i], scaling[i], code, requant);
        output_1[i] = thimble_requantize_s8(sums[4 + i], scaling[i], code, requant);
    }
}

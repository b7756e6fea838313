/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lanes.h"
#include "thimble_requantize_s8.h"
#include "thimble_units.h"

#if THIMBLE_MVE
/* thimble_requantize_once_fast of four sums. */
static void put_vector(const int32_t *sums,
                       const int32_t *scaling,
                       uint32_t count,
                       const thimble_requant *requant,
                       int8_t *output)
{
    const int32x4_t codes = vldrbq_s32((const int8_t *)(scaling + 8));
    const int32x4_t rounding = vshlq_s32(vdupq_n_s32(2 * requant->output_offset + 1), codes);
    const int32x4_t high = vaddq_s32(vqdmulhq_s32(vldrwq_s32(sums), vldrwq_s32(scaling)), rounding);
    const int32x4_t value = vshlq_s32(high, vmvnq_s32(codes)); /* by -(code + 1) */
    const int32x4_t low = vdupq_n_s32(requant->activation_min);
    const int32x4_t top = vdupq_n_s32(requant->activation_max);
    vstrbq_p_s32(output, vminq_s32(vmaxq_s32(value, low), top), vctp32q(count));
}
#else
/* One of four units whose codes have a fast form. */
static inline int8_t unit(const int32_t *sums, const int32_t *scaling, int32_t at, int32_t twice)
{
    const int32_t code = (int32_t)((uint32_t)scaling[8] >> (8 * at) & 0xFFU);
    const int32_t rounding = (int32_t)((uint32_t)twice << code);
    return (int8_t)thimble_requantize_once_fast(sums[at], scaling[at], code, rounding);
}
#endif

int8_t *thimble_put_units_s8(const int32_t *sums,
                             const int32_t *scaling,
                             int32_t count,
                             const thimble_requant *requant,
                             int8_t *output)
{
    uint32_t codes = (uint32_t)scaling[8];
#if THIMBLE_MVE
    if ((codes & 0x80808080U) == 0) {
        put_vector(sums, scaling, (uint32_t)count, requant, output);
        return output + count;
    }
#else
    if (count == 4 && (codes & 0x80808080U) == 0 && !thimble_narrow(requant)) {
        const int32_t twice = 2 * requant->output_offset + 1;
        const int8_t quick[4] = {unit(sums, scaling, 0, twice), unit(sums, scaling, 1, twice),
                                 unit(sums, scaling, 2, twice), unit(sums, scaling, 3, twice)};
        output[0] = quick[0];
        output[1] = quick[1];
        output[2] = quick[2];
        output[3] = quick[3];
        return output + 4;
    }
#endif
    for (int32_t i = 0; i < count; i++, codes >>= 8) {
        const int32_t code = (int8_t)(uint8_t)codes;
        *output++ = thimble_requantize_once_s8(sums[i], scaling[i], scaling[4 + i], code, requant);
    }
    return output;
}

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

static inline int32_t thimble_all_float(const int32_t *scaling)
{
    return (uint32_t)scaling[12] == 0xFFFFFFFFU; /* four times THIMBLE_SHIFT_FLOAT */
}

/* Outputs of `pixels` pixels, `step` bytes apart, of which four sums without their biases follow each other.
 */
void thimble_put_any_lanes_s8(const int32_t *sums,
                              int32_t pixels,
                              const int32_t *scaling,
                              const thimble_requant *requant,
                              int8_t *output,
                              int32_t step);

/* The same of pixels without gaps, quicker where sums are rounded once; with `second` of as many sums there,
 * to `below`. Four sums behind the last are read. */
static inline void thimble_put_lanes(const int32_t *sums,
                                     const int32_t *second,
                                     int32_t pixels,
                                     const int32_t *scaling,
                                     const thimble_requant *requant,
                                     int8_t *output,
                                     int8_t *below)
{
#if THIMBLE_MVE && THIMBLE_ASM
    if (thimble_all_once(scaling)) {
        const int32x4_t bias = vldrwq_s32(scaling), multiplier = vldrwq_s32(scaling + 4);
        const int32x4_t rounding = vldrwq_s32(scaling + 8);
        const int32x4_t left = vldrbq_s32((const int8_t *)(scaling + 12));
        for (;;) {
            int32x4_t high, next, value;
            /* A turn multiplies the sums of the next one. */
            __asm volatile("vldrw.u32     %q[next], [%[sums]], #16        \n"
                           "vadd.i32      %q[next], %q[next], %q[bias]    \n"
                           "vmulh.s32     %q[high], %q[next], %q[factor]  \n"
                           "dls           lr, %[pixels]                   \n"
                           "1:                                            \n"
                           "vadd.i32      %q[high], %q[high], %q[rounding]\n"
                           "vldrw.u32     %q[next], [%[sums]], #16        \n"
                           "vqshl.s32     %q[value], %q[high], %q[left]   \n"
                           "vadd.i32      %q[next], %q[next], %q[bias]    \n"
                           "vmulh.s32     %q[high], %q[next], %q[factor]  \n"
                           "vshr.s32      %q[value], %q[value], #24       \n"
                           "vstrb.32      %q[value], [%[to]], #4          \n"
                           "le            lr, 1b                          \n"
                           : [high] "=&w"(high), [next] "=&w"(next), [value] "=&w"(value), [sums] "+r"(sums),
                             [to] "+l"(output)
                           : [bias] "w"(bias), [factor] "w"(multiplier), [rounding] "w"(rounding),
                             [left] "w"(left), [pixels] "r"(pixels)
                           : "memory", "lr");
            if (!second) {
                return;
            }
            sums = second;
            output = below;
            second = NULL;
        }
    }
#endif
    thimble_put_any_lanes_s8(sums, pixels, scaling, requant, output, 4);
    if (second != NULL) {
        thimble_put_any_lanes_s8(second, pixels, scaling, requant, below, 4);
    }
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of two columns of bytes with four filters in vectors of sixteen, and their ends. */
#ifndef THIMBLE_LANE_SUMS_H
#define THIMBLE_LANE_SUMS_H

#include "thimble_lane_columns.h"
#include "thimble_requantize_lanes.h"

static inline int32_t thimble_whole_vectors(int32_t taps)
{
    return (taps + THIMBLE_LANES - 1) & -THIMBLE_LANES;
}

/* Sums of two columns, of four channels: four of the first, four of the second; returns what follows their
 * filters. */
const int32_t *thimble_sum_lanes_s8(
    const int32_t *parameters, const int8_t *column_0, const int8_t *column_1, int32_t taps, int32_t *sums);

#if THIMBLE_MVE && THIMBLE_ASM
/* Outputs of two pixels from their sums of four channels in q4 and q5; `at`: their scaling. Loads, products
 * and sums take turns, so that each is under way while the next one starts.
 *
 * Of sums that are rounded once the high word of a product is rounded; of others (5:) twice the product is,
 * and one is taken off where the sum is negative. */
#define SCALED                                                                                               \
    "vldrw.u32     q6, [%[at]], #16             \n"                                                          \
    "vldrw.u32     q7, [%[at]], #16             \n"                                                          \
    "vadd.i32      q4, q4, q6                   \n"                                                          \
    "ldr           %[s00], [%[at], #16]         \n"                                                          \
    "vadd.i32      q5, q5, q6                   \n"                                                          \
    "tst           %[s00], #0x20                \n"                                                          \
    "bne           5f                           \n"                                                          \
    "vmulh.s32     q4, q4, q7                   \n"                                                          \
    "vldrw.u32     q6, [%[at]], #16             \n"                                                          \
    "vmulh.s32     q5, q5, q7                   \n"                                                          \
    "vadd.i32      q4, q4, q6                   \n"                                                          \
    "vldrb.s32     q7, [%[at]], #4              \n"                                                          \
    "6:                                         \n"                                                          \
    "vadd.i32      q5, q5, q6                   \n"                                                          \
    "vqshl.s32     q4, q4, q7                   \n"                                                          \
    "vqshl.s32     q5, q5, q7                   \n"                                                          \
    "9:                                         \n"                                                          \
    "vshr.s32      q4, q4, #24                  \n"                                                          \
    "vshr.s32      q5, q5, #24                  \n"                                                          \
    "vstrb.32      q4, [%[to]], #4              \n"                                                          \
    "vstrb.32      q5, [%[beside]], #4          \n"

#define TWICE                                                                                                \
    "5:                                         \n"                                                          \
    "cmp           %[s00], #0                   \n"                                                          \
    "blt           8f                           \n"                                                          \
    "vshr.s32      q6, q4, #31                  \n"                                                          \
    "vqrdmulh.s32  q4, q4, q7                   \n"                                                          \
    "vadd.i32      q4, q4, q6                   \n"                                                          \
    "vshr.s32      q6, q5, #31                  \n"                                                          \
    "vqrdmulh.s32  q5, q5, q7                   \n"                                                          \
    "vadd.i32      q5, q5, q6                   \n"                                                          \
    "mov           %[s00], #32                  \n"                                                          \
    "vldrw.u32     q6, [%[at]], #16             \n"                                                          \
    "vldrb.s32     q7, [%[at]], #4              \n"                                                          \
    "vadd.i32      q4, q4, q6                   \n"                                                          \
    "vsub.i32      q7, q7, %[s00]               \n"                                                          \
    "b             6b                           \n"                                                          \
    "8:                                         \n" IN_FLOAT

/* Float factors: rounded to float, then to the nearest integer, halves to even. The rounding terms are the
 * output's offset. */
#if (__ARM_FEATURE_MVE & 2)
#define IN_FLOAT                                                                                             \
    "vcvt.f32.s32  q4, q4                       \n"                                                          \
    "vcvt.f32.s32  q5, q5                       \n"                                                          \
    "vmul.f32      q4, q4, q7                   \n"                                                          \
    "vldrw.u32     q6, [%[at]], #16             \n"                                                          \
    "vmul.f32      q5, q5, q7                   \n"                                                          \
    "add           %[at], %[at], #4             \n"                                                          \
    "vcvtn.s32.f32 q4, q4                       \n"                                                          \
    "vcvtn.s32.f32 q5, q5                       \n"                                                          \
    "vqadd.s32     q4, q4, q6                   \n"                                                          \
    "vqadd.s32     q5, q5, q6                   \n"                                                          \
    "vqshl.s32     q4, q4, #24                  \n"                                                          \
    "vqshl.s32     q5, q5, #24                  \n"                                                          \
    "b             9b                           \n"
#else
#define IN_FLOAT ""
#endif

/* Sums of two channels of both pixels, of columns of one vector. */
#define ONE_VECTOR                                                                                           \
    "vldrb.8       q2, [%[at]], #16             \n"                                                          \
    "vmladav.s8    %[s00], q0, q2               \n"                                                          \
    "vldrb.8       q3, [%[at]], #16             \n"                                                          \
    "vmladav.s8    %[s10], q1, q2               \n"                                                          \
    "vmladav.s8    %[s01], q0, q3               \n"                                                          \
    "vmladav.s8    %[s11], q1, q3               \n"

/* The same of more vectors. The last product of a turn waits for the next turn's first load. */
#define VECTORS                                                                                              \
    "vldrb.8       q0, [%[x0]], #16             \n"                                                          \
    "vldrb.8       q1, [%[at]], #16             \n"                                                          \
    "vmladav.s8    %[s00], q0, q1               \n"                                                          \
    "vldrb.8       q2, [%[x1]], #16             \n"                                                          \
    "vmladav.s8    %[s10], q2, q1               \n"                                                          \
    "vldrb.8       q3, [%[at]], #16             \n"                                                          \
    "vmladav.s8    %[s01], q0, q3               \n"                                                          \
    "mov           %[s11], #0                   \n"                                                          \
    "dls           lr, %[more]                  \n"                                                          \
    "1:                                         \n"                                                          \
    "vldrb.8       q0, [%[x0]], #16             \n"                                                          \
    "vmladava.s8   %[s11], q2, q3               \n"                                                          \
    "vldrb.8       q1, [%[at]], #16             \n"                                                          \
    "vmladava.s8   %[s00], q0, q1               \n"                                                          \
    "vldrb.8       q2, [%[x1]], #16             \n"                                                          \
    "vmladava.s8   %[s10], q2, q1               \n"                                                          \
    "vldrb.8       q3, [%[at]], #16             \n"                                                          \
    "vmladava.s8   %[s01], q0, q3               \n"                                                          \
    "le            lr, 1b                       \n"                                                          \
    "sub           %[x0], %[x0], %[bytes]       \n"                                                          \
    "vmladava.s8   %[s11], q2, q3               \n"                                                          \
    "sub           %[x1], %[x1], %[bytes]       \n"

#define TO_LANES(high, low)                                                                                  \
    "vmov          q4[" high "], q4[" low "], %[s00], %[s01] \n"                                             \
    "vmov          q5[" high "], q5[" low "], %[s10], %[s11] \n"

#define SUMS_STORED                                                                                          \
    "vstrw.32      q4, [%[sums]]                \n"                                                          \
    "vstrw.32      q5, [%[sums], #16]           \n"

/* Outputs of int8's own range held in the activation's. */
static inline void thimble_hold_lanes(const thimble_requant *requant, int8_t *outputs, int32_t count)
{
    const int8x16_t low = vdupq_n_s8((int8_t)requant->activation_min);
    const int8x16_t top = vdupq_n_s8((int8_t)requant->activation_max);
    for (; count > 0; count -= THIMBLE_LANES, outputs += THIMBLE_LANES) {
        const mve_pred16_t lanes = vctp8q((uint32_t)count);
        vstrbq_p_s8(outputs, vminq_s8(vmaxq_s8(vldrbq_z_s8(outputs, lanes), low), top), lanes);
    }
}
#endif

#endif

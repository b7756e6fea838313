/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_columns.h"
#include "thimble_requantize_lanes.h"

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

static int32_t whole_vectors(int32_t taps)
{
    return (taps + THIMBLE_LANES - 1) & -THIMBLE_LANES;
}

/* Fours of channels, all of one kind of scaling each, in int8's own range. */
THIMBLE_ASM_FUNCTION static void put_one_vector(const int32_t *parameters,
                                                const int8_t *column_0,
                                                const int8_t *column_1,
                                                int32_t fours,
                                                int8_t *output_0,
                                                int8_t *output_1)
{
    int32_t s00, s01, s10, s11;
    __asm volatile("vldrb.8       q0, [%[x0]]                  \n"
                   "vldrb.8       q1, [%[x1]]                  \n"
                   "dls           lr, %[fours]                 \n"
                   "1:                                         \n" ONE_VECTOR TO_LANES("2", "0")
                       ONE_VECTOR TO_LANES("3", "1") SCALED
                   "le            lr, 1b                       \n"
                   "b             7f                           \n" TWICE
                   "7:                                         \n"
                   : [s00] "=&Te"(s00), [s01] "=&Te"(s01), [s10] "=&Te"(s10), [s11] "=&Te"(s11),
                     [at] "+l"(parameters), [to] "+l"(output_0), [beside] "+l"(output_1)
                   : [x0] "r"(column_0), [x1] "r"(column_1), [fours] "r"(fours)
                   : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory", "lr", "cc");
}

/* The same of columns of more vectors: `bytes` of them. */
THIMBLE_ASM_FUNCTION static void put_vectors(const int32_t *parameters,
                                             const int8_t *column_0,
                                             const int8_t *column_1,
                                             int32_t bytes,
                                             int32_t fours,
                                             int8_t *output_0,
                                             int8_t *output_1)
{
    int32_t s00, s01, s10, s11;
    __asm volatile("2:                                         \n" VECTORS TO_LANES("2", "0")
                       VECTORS TO_LANES("3", "1") SCALED "subs          %[fours], #1                 \n"
                                                         "bne           2b                           \n"
                                                         "b             7f                           \n" TWICE
                                                         "7:                                         \n"
                   : [s00] "=&Te"(s00), [s01] "=&Te"(s01), [s10] "=&Te"(s10), [s11] "=&Te"(s11),
                     [at] "+l"(parameters), [to] "+l"(output_0), [beside] "+l"(output_1), [x0] "+r"(column_0),
                     [x1] "+r"(column_1), [fours] "+r"(fours)
                   : [bytes] "r"(bytes), [more] "r"((bytes >> 4) - 1)
                   : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory", "lr", "cc");
}
#endif

/* Sums of two columns, of four channels; returns what follows their filters. */
#if THIMBLE_MVE && THIMBLE_ASM
THIMBLE_ASM_FUNCTION static const int32_t *sum_taps(
    const int32_t *parameters, const int8_t *column_0, const int8_t *column_1, int32_t taps, int32_t *sums)
{
    const int32_t bytes = whole_vectors(taps);
    int32_t s00, s01, s10, s11;
    if (taps <= THIMBLE_LANES) {
        __asm volatile("vldrb.8       q0, [%[x0]]                  \n"
                       "vldrb.8       q1, [%[x1]]                  \n" ONE_VECTOR TO_LANES("2", "0")
                           ONE_VECTOR TO_LANES("3", "1") SUMS_STORED
                       : [s00] "=&Te"(s00), [s01] "=&Te"(s01), [s10] "=&Te"(s10), [s11] "=&Te"(s11),
                         [at] "+r"(parameters)
                       : [x0] "r"(column_0), [x1] "r"(column_1), [sums] "r"(sums)
                       : "q0", "q1", "q2", "q3", "q4", "q5", "memory");
        return parameters;
    }
    __asm volatile(VECTORS TO_LANES("2", "0") VECTORS TO_LANES("3", "1") SUMS_STORED
                   : [s00] "=&Te"(s00), [s01] "=&Te"(s01), [s10] "=&Te"(s10), [s11] "=&Te"(s11),
                     [at] "+r"(parameters), [x0] "+r"(column_0), [x1] "+r"(column_1)
                   : [bytes] "r"(bytes), [more] "r"((bytes >> 4) - 1), [sums] "r"(sums)
                   : "q0", "q1", "q2", "q3", "q4", "q5", "memory", "lr");
    return parameters;
}

/* Outputs of int8's own range held in the activation's. */
static void hold(const thimble_requant *requant, int8_t *outputs, int32_t count)
{
    const int8x16_t low = vdupq_n_s8((int8_t)requant->activation_min);
    const int8x16_t top = vdupq_n_s8((int8_t)requant->activation_max);
    for (; count > 0; count -= THIMBLE_LANES, outputs += THIMBLE_LANES) {
        const mve_pred16_t lanes = vctp8q((uint32_t)count);
        vstrbq_p_s8(outputs, vminq_s8(vmaxq_s8(vldrbq_z_s8(outputs, lanes), low), top), lanes);
    }
}
#else
static const int32_t *sum_taps(
    const int32_t *parameters, const int8_t *column_0, const int8_t *column_1, int32_t taps, int32_t *sums)
{
    const int8_t *filters = (const int8_t *)parameters;
    memset(sums, 0, 8 * sizeof(int32_t));
    for (int32_t channel = 0; channel < 2; channel++) {
        for (int32_t at = 0; at < taps; at += THIMBLE_LANES, filters += 2 * THIMBLE_LANES) {
            const int32_t lanes = taps - at < THIMBLE_LANES ? taps - at : THIMBLE_LANES;
            for (int32_t i = 0; i < 2 * lanes; i++) {
                const int32_t later = i < lanes ? 0 : 1, lane = i - later * lanes;
                const int32_t weight = filters[later * THIMBLE_LANES + lane];
                int32_t *const sum = sums + channel + 2 * later;
                sum[0] = thimble_add(sum[0], column_0[at + lane] * weight);
                sum[4] = thimble_add(sum[4], column_1[at + lane] * weight);
            }
        }
    }
    return (const int32_t *)(const void *)filters;
}
#endif

#if THIMBLE_MVE && THIMBLE_ASM
static int32_t is_quick(const int32_t *scaling)
{
#if (__ARM_FEATURE_MVE & 2)
    const int32_t in_float = thimble_all_float(scaling);
#else
    const int32_t in_float = 0;
#endif
    return in_float || thimble_all_once(scaling) || thimble_all_fast(scaling);
}
#endif

int32_t thimble_quick_lanes(const int32_t *parameters, int32_t taps, int32_t channels)
{
#if THIMBLE_MVE && THIMBLE_ASM
    const int32_t words = whole_vectors(taps);
    int32_t quick = 1;
    for (; quick && channels >= 4; channels -= 4, parameters += words + THIMBLE_LANE_SCALING) {
        quick = is_quick(parameters + words);
    }
    return quick;
#else
    (void)parameters;
    (void)taps;
    (void)channels;
    return 0;
#endif
}

/* Fours of channels of any scaling, and the last channels. */
__attribute__((noinline)) static void put_any(const int32_t *parameters,
                                              const int8_t *column_0,
                                              const int8_t *column_1,
                                              int32_t taps,
                                              int32_t channels,
                                              const thimble_requant *requant,
                                              int8_t *output_0,
                                              int8_t *output_1)
{
    for (; channels > 0; channels -= 4, output_0 += 4, output_1 += 4) {
        int32_t sums[8];
        parameters = sum_taps(parameters, column_0, column_1, taps, sums);
        if (channels >= 4) {
            thimble_put_any_lanes_s8(sums, 2, parameters, requant, output_0, (int32_t)(output_1 - output_0));
        } else {
            int8_t outputs[8];
            thimble_put_any_lanes_s8(sums, 2, parameters, requant, outputs, 4);
            for (int32_t i = 0; i < channels; i++) {
                output_0[i] = outputs[i];
                output_1[i] = outputs[4 + i];
            }
        }
        parameters += THIMBLE_LANE_SCALING;
    }
}

void thimble_mat_mult_lanes_s8(const int32_t *parameters,
                               const int8_t *column_0,
                               const int8_t *column_1,
                               int32_t taps,
                               int32_t channels,
                               int32_t quick,
                               const thimble_requant *requant,
                               int8_t *output_0,
                               int8_t *output_1)
{
#if THIMBLE_MVE && THIMBLE_ASM
    const int32_t fours = channels >> 2;
    if (quick && fours) {
        const int32_t bytes = whole_vectors(taps);
        if (taps <= THIMBLE_LANES) {
            put_one_vector(parameters, column_0, column_1, fours, output_0, output_1);
        } else {
            put_vectors(parameters, column_0, column_1, bytes, fours, output_0, output_1);
        }
        if (thimble_narrow(requant)) {
            hold(requant, output_0, 4 * fours);
            hold(requant, output_1, 4 * fours);
        }
        channels &= 3;
        if (!channels) {
            return;
        }
        parameters += fours * (bytes + THIMBLE_LANE_SCALING);
        output_0 += 4 * fours;
        output_1 += 4 * fours;
    }
#else
    (void)quick;
#endif
    put_any(parameters, column_0, column_1, taps, channels, requant, output_0, output_1);
}

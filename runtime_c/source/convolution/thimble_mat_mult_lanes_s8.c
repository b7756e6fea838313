/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_sums.h"

#if THIMBLE_MVE && THIMBLE_ASM
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
    const int32_t words = thimble_whole_vectors(taps);
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
        parameters = thimble_sum_lanes_s8(parameters, column_0, column_1, taps, sums);
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
        const int32_t bytes = thimble_whole_vectors(taps);
        if (taps <= THIMBLE_LANES) {
            put_one_vector(parameters, column_0, column_1, fours, output_0, output_1);
        } else {
            put_vectors(parameters, column_0, column_1, bytes, fours, output_0, output_1);
        }
        if (thimble_narrow(requant)) {
            thimble_hold_lanes(requant, output_0, 4 * fours);
            thimble_hold_lanes(requant, output_1, 4 * fours);
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

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_sums.h"

#if THIMBLE_MVE && THIMBLE_ASM
THIMBLE_ASM_FUNCTION const int32_t *thimble_sum_lanes_s8(
    const int32_t *parameters, const int8_t *column_0, const int8_t *column_1, int32_t taps, int32_t *sums)
{
    const int32_t bytes = thimble_whole_vectors(taps);
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

#else
const int32_t *thimble_sum_lanes_s8(
    const int32_t *parameters, const int8_t *column_0, const int8_t *column_1, int32_t taps, int32_t *sums)
{
    const int8_t *filters = (const int8_t *)parameters;
    (void)memset(sums, 0, 8 * sizeof(int32_t));
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

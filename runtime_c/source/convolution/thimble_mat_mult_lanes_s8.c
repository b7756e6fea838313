/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_columns.h"
#include "thimble_requantize_lanes.h"

/* Sums of two columns (by fours) with the filters of two channels; returns the filters after these.
 */
static inline const int8_t *sum_pair(const int32_t *biases,
                                     const int8_t *filters,
                                     const int8_t *column_0,
                                     const int8_t *column_1,
                                     int32_t taps,
                                     int32_t *restrict sums)
{
    int32_t s00 = biases[0], s01 = biases[1], s10 = biases[0], s11 = biases[1];
#if THIMBLE_MVE
    /* Loads and products take turns, so that each is under way while the next one starts; the last product
     * of a turn waits for the next turn's first load. */
    const int32_t rest = taps % THIMBLE_LANES;
    __asm volatile("vmov.i32      q3, #0              \n"
                   "wls           lr, %[turns], 2f    \n"
                   "1:                                \n"
                   "vldrb.8       q0, [%[x0]], #16    \n"
                   "vmladava.s8   %[s11], q2, q3      \n"
                   "vldrb.8       q1, [%[at]], #16    \n"
                   "vmladava.s8   %[s00], q0, q1      \n"
                   "vldrb.8       q2, [%[x1]], #16    \n"
                   "vmladava.s8   %[s10], q2, q1      \n"
                   "vldrb.8       q3, [%[at]], #16    \n"
                   "vmladava.s8   %[s01], q0, q3      \n"
                   "le            lr, 1b              \n"
                   "2:                                \n"
                   "vmladava.s8   %[s11], q2, q3      \n"
                   "cbz           %[rest], 3f         \n"
                   "vctp.8        %[rest]             \n"
                   "vpstt                             \n"
                   "vldrbt.8      q0, [%[x0]]         \n"
                   "vldrbt.8      q2, [%[x1]]         \n"
                   "vldrb.8       q1, [%[at]], #16    \n"
                   "vmladava.s8   %[s00], q0, q1      \n"
                   "vldrb.8       q3, [%[at]], #16    \n"
                   "vmladava.s8   %[s10], q2, q1      \n"
                   "vmladava.s8   %[s01], q0, q3      \n"
                   "vmladava.s8   %[s11], q2, q3      \n"
                   "3:                                \n"
                   : [s00] "+Te"(s00), [s01] "+Te"(s01), [s10] "+Te"(s10), [s11] "+Te"(s11),
                     [at] "+r"(filters), [x0] "+r"(column_0), [x1] "+r"(column_1)
                   : [turns] "r"(taps / THIMBLE_LANES), [rest] "l"(rest)
                   : "q0", "q1", "q2", "q3", "memory", "lr");
#else
    for (; taps > 0; taps -= THIMBLE_LANES, filters += 2 * THIMBLE_LANES) {
        const int32_t lanes = taps < THIMBLE_LANES ? taps : THIMBLE_LANES;
        for (int32_t i = 0; i < lanes; i++, column_0++, column_1++) {
            s00 = thimble_add(s00, *column_0 * filters[i]);
            s01 = thimble_add(s01, *column_0 * filters[THIMBLE_LANES + i]);
            s10 = thimble_add(s10, *column_1 * filters[i]);
            s11 = thimble_add(s11, *column_1 * filters[THIMBLE_LANES + i]);
        }
    }
#endif
    sums[0] = s00;
    sums[1] = s01;
    sums[4] = s10;
    sums[5] = s11;
    return filters;
}

void thimble_mat_mult_lanes_s8(const int32_t *parameters,
                               const int8_t *column_0,
                               const int8_t *column_1,
                               int32_t taps,
                               int32_t channels,
                               const thimble_requant *requant,
                               int8_t *output_0,
                               int8_t *output_1)
{
    const thimble_lane_ending ending = thimble_ending_of(requant);
    for (; channels > 0; channels -= 4, output_0 += 4, output_1 += 4) {
        const int32_t count = channels < 4 ? channels : 4;
        int32_t sums[8];
        const int8_t *filters = (const int8_t *)(parameters + 4);
        filters = sum_pair(parameters, filters, column_0, column_1, taps, sums);
        filters = sum_pair(parameters + 2, filters, column_0, column_1, taps, sums + 2);
        parameters = (const int32_t *)(const void *)filters;
        thimble_put_lanes(sums, parameters, count, &ending, output_0, output_1);
        parameters += 5;
    }
}

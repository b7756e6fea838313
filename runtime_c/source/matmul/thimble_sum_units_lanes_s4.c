/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fours.h"
#include "thimble_lanes.h"
#include "thimble_units.h"

#define LOWER_BITS 0x0F

/* A byte is 16 times the weight of one unit and 8 plus that of another (thimble_fours.h). */
const int32_t *thimble_sum_units_lanes_s4(
    const int8_t *input, const int32_t *parameters, int32_t depth, int32_t offset, int32_t *restrict sums)
{
    int32_t s0 = thimble_add(parameters[0], offset), s2 = thimble_add(parameters[2], offset);
    int32_t s1 = s0, s3 = s2;
    const int8_t *filters = (const int8_t *)(parameters + 4);
#if THIMBLE_MVE
    /* The last turn's lanes beyond the depth are predicated away. */
    __asm volatile("vdup.8        q4, %[mask]         \n"
                   "wlstp.8       lr, %[depth], 2f    \n"
                   "1:                                \n"
                   "vldrb.8       q0, [%[input]], #16 \n"
                   "vldrb.8       q1, [%[at]], #16    \n"
                   "vmladava.s8   %[s1], q0, q1       \n"
                   "vldrb.8       q2, [%[at]], #16    \n"
                   "vmladava.s8   %[s3], q0, q2       \n"
                   "vand          q1, q1, q4          \n"
                   "vmladava.s8   %[s0], q0, q1       \n"
                   "vand          q2, q2, q4          \n"
                   "vmladava.s8   %[s2], q0, q2       \n"
                   "letp          lr, 1b              \n"
                   "2:                                \n"
                   : [s0] "+Te"(s0), [s1] "+Te"(s1), [s2] "+Te"(s2), [s3] "+Te"(s3), [at] "+r"(filters),
                     [input] "+r"(input)
                   : [depth] "r"(depth), [mask] "r"(LOWER_BITS)
                   : "q0", "q1", "q2", "q4", "memory", "lr");
#else
    for (; depth > 0; depth -= THIMBLE_LANES, input += THIMBLE_LANES, filters += 2 * THIMBLE_LANES) {
        const int32_t lanes = depth < THIMBLE_LANES ? depth : THIMBLE_LANES;
        for (int32_t i = 0; i < lanes; i++) {
            const int32_t first = filters[i], second = filters[THIMBLE_LANES + i];
            s0 = thimble_add(s0, input[i] * (first & LOWER_BITS));
            s1 = thimble_add(s1, input[i] * first);
            s2 = thimble_add(s2, input[i] * (second & LOWER_BITS));
            s3 = thimble_add(s3, input[i] * second);
        }
    }
#endif
    sums[0] = s0;
    sums[1] = thimble_part_fours(s1, s0, parameters[1]);
    sums[2] = s2;
    sums[3] = thimble_part_fours(s3, s2, parameters[3]);
    return (const int32_t *)(const void *)filters;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_significant.h"
#include "thimble_spectrum.h"

#define ONE_BITS 16    /* Logarithms have so many fractional bits. */
#define SEGMENT_BITS 7 /* The table has 2^7 segments between powers of two. */
#define LN_2 45426     /* ln 2, with 16 fractional bits */

/* log2(1 + i / 128) - i / 128, with 16 fractional bits. */
static const uint16_t excess[] = {
    0,    224,  442,  654,  861,  1063, 1259, 1450, 1636, 1817, 1992, 2163, 2329, 2490, 2646, 2797, 2944,
    3087, 3224, 3358, 3487, 3611, 3732, 3848, 3960, 4068, 4172, 4272, 4368, 4460, 4549, 4633, 4714, 4791,
    4864, 4934, 5001, 5063, 5123, 5178, 5231, 5280, 5326, 5368, 5408, 5444, 5477, 5507, 5533, 5557, 5578,
    5595, 5610, 5622, 5631, 5637, 5640, 5641, 5638, 5633, 5626, 5615, 5602, 5586, 5568, 5547, 5524, 5498,
    5470, 5439, 5406, 5370, 5332, 5291, 5249, 5203, 5156, 5106, 5054, 5000, 4944, 4885, 4825, 4762, 4697,
    4630, 4561, 4490, 4416, 4341, 4264, 4184, 4103, 4020, 3935, 3848, 3759, 3668, 3575, 3481, 3384, 3286,
    3186, 3084, 2981, 2875, 2768, 2659, 2549, 2437, 2323, 2207, 2090, 1971, 1851, 1729, 1605, 1480, 1353,
    1224, 1094, 963,  830,  695,  559,  421,  282,  142,  0,
};

static uint32_t natural(uint32_t value, uint32_t scale)
{
    const int32_t whole = thimble_significant_bits(value) - 1;
    const uint32_t above = value - (1U << whole);
    const int32_t fraction =
        (int32_t)(whole < ONE_BITS ? above << (ONE_BITS - whole) : above >> (whole - ONE_BITS));
    const int32_t segment = fraction >> (ONE_BITS - SEGMENT_BITS);
    const int32_t begin = segment << (ONE_BITS - SEGMENT_BITS);
    const int32_t rise = (excess[segment + 1] - excess[segment]) * (fraction - begin);
    const uint32_t log_2 =
        ((uint32_t)whole << ONE_BITS) + (uint32_t)(fraction + excess[segment] + (rise >> ONE_BITS));
    const uint32_t half = 1U << (ONE_BITS - 1);
    const uint32_t log_e = (uint32_t)(((uint64_t)LN_2 * log_2 + half) >> ONE_BITS);

    return (scale * log_e + half) >> ONE_BITS;
}

void thimble_logs_u32(
    const uint32_t *signal, int32_t count, int32_t scale, int32_t correction_bits, int16_t *logs)
{
    for (int32_t i = 0; i < count; i++) {
        const uint32_t value = signal[i] << correction_bits;
        const uint32_t log = value > 1U ? natural(value, (uint32_t)scale) : 0U;

        logs[i] = (int16_t)(log < INT16_MAX ? log : INT16_MAX);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Products with filters of four bits, four filters at a time.
 *
 * Each half of a word holds a tap of four filters, in four bits each, the first filter's lowest; those of the
 * first and the third are plus 8. A byte is then 16 times the weight of one filter and 8 plus that of
 * another, so one instruction unpacks it for both, and a second one the lower four bits. Products with bytes
 * less those with the lower bits are 16 times what the filters in the higher bits sum up to. The others begin
 * at minus 8 times the sum of all inputs. */
#ifndef THIMBLE_FOURS_H
#define THIMBLE_FOURS_H

#include "thimble_dsp.h"

#if THIMBLE_ASM
/* Two taps, as int16, times a word of four filters, which is unpacked in place; u is free. */
#define THIMBLE_FOURS(word, taps)                                                                            \
    "sxtb16  %[u], " word ", ror #8                \n"                                                       \
    "sxtb16  " word ", " word "                    \n"                                                       \
    "smlad   %[s3], " taps ", %[u], %[s3]          \n"                                                       \
    "smlad   %[s1], " taps ", " word ", %[s1]      \n"                                                       \
    "and     %[u], %[u], #0x000F000F               \n"                                                       \
    "and     " word ", " word ", #0x000F000F       \n"                                                       \
    "smlad   %[s2], " taps ", %[u], %[s2]          \n"                                                       \
    "smlad   %[s0], " taps ", " word ", %[s0]      \n"
#endif

/* The same in C. */
static inline void thimble_add_fours(uint32_t word, uint32_t taps, int32_t *sums)
{
    const uint32_t high = thimble_sxtb16_ror8(word), low = thimble_sxtb16(word), lower_bits = 0x000F000FU;
    sums[0] = thimble_smlad(taps, low & lower_bits, sums[0]);
    sums[1] = thimble_smlad(taps, low, sums[1]);
    sums[2] = thimble_smlad(taps, high & lower_bits, sums[2]);
    sums[3] = thimble_smlad(taps, high, sums[3]);
}

/* What the higher bits sum up to, and their bias; `both` and `lower` began at the same value. */
static inline int32_t thimble_part_fours(int32_t both, int32_t lower, int32_t bias)
{
    return thimble_add((int32_t)((uint32_t)both - (uint32_t)lower) >> 4, bias);
}

#endif

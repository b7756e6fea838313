/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns_s4.h"
#include "thimble_dsp.h"

#define LOW_BITS 0x000F000FU

#if THIMBLE_ASM
/* Two taps of one column and four channels. */
#define HALF(word, tap)                                                                                      \
    "sxtb16  %[u], " word ", ror #8                \n"                                                       \
    "sxtb16  " word ", " word "                    \n"                                                       \
    "smlad   %[s3], " tap ", %[u], %[s3]           \n"                                                       \
    "smlad   %[s1], " tap ", " word ", %[s1]       \n"                                                       \
    "and     %[u], %[u], #0x000F000F               \n"                                                       \
    "and     " word ", " word ", #0x000F000F       \n"                                                       \
    "smlad   %[s2], " tap ", %[u], %[s2]           \n"                                                       \
    "smlad   %[s0], " tap ", " word ", %[s0]       \n"
#endif

/* The same, in C. */
static void add_taps(uint32_t word, uint32_t tap, int32_t *sums)
{
    const uint32_t high = thimble_sxtb16_ror8(word), low = thimble_sxtb16(word);
    sums[0] = thimble_smlad(tap, low & LOW_BITS, sums[0]);
    sums[1] = thimble_smlad(tap, low, sums[1]);
    sums[2] = thimble_smlad(tap, high & LOW_BITS, sums[2]);
    sums[3] = thimble_smlad(tap, high, sums[3]);
}

/* What the higher bits sum up to, and their bias. */
static int32_t parted(int32_t both, int32_t low, int32_t bias)
{
    return thimble_add((int32_t)((uint32_t)both - (uint32_t)low) >> 4, bias);
}

THIMBLE_ASM_FUNCTION const int32_t *thimble_sum_block_s4(const int32_t *parameters,
                                                         const uint32_t *columns,
                                                         int32_t words,
                                                         int32_t interleaved,
                                                         int32_t count,
                                                         const int32_t *offsets,
                                                         int32_t *sums)
{
    const int32_t *at = parameters + 2;
    for (int32_t i = 0; i < count; i++) {
        sums[4 * i] = sums[4 * i + 1] = thimble_add(parameters[0], offsets[i]);
        sums[4 * i + 2] = sums[4 * i + 3] = thimble_add(parameters[1], offsets[i]);
    }
#if THIMBLE_ASM
    if (interleaved == 1 && words > 0) {
        int32_t s0 = sums[0], s1 = sums[1], s2 = sums[2], s3 = sums[3];
        uint32_t w0, w1, t0, t1, u;
        __asm volatile("1:                                \n"
                       "ldr     %[w1], [%[at], #4]        \n"
                       "ldr     %[w0], [%[at]], #8        \n"
                       "ldr     %[t1], [%[column], #4]    \n"
                       "ldr     %[t0], [%[column]], #8    \n" HALF("%[w0]", "%[t0]")
                           HALF("%[w1]", "%[t1]") "subs    %[n], %[n], #1            \n"
                                                  "bne     1b                        \n"
                       : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [n] "+r"(words),
                         [at] "+r"(at), [column] "+r"(columns), [w0] "=&r"(w0), [w1] "=&r"(w1),
                         [t0] "=&r"(t0), [t1] "=&r"(t1), [u] "=&r"(u)
                       :
                       : "cc", "memory");
        sums[0] = s0;
        sums[1] = s1;
        sums[2] = s2;
        sums[3] = s3;
    }
#endif
    for (; words > 0; words--, at += 2, columns += 2 * interleaved) {
        for (int32_t i = 0; i < count; i++) {
            add_taps((uint32_t)at[0], columns[2 * i], sums + 4 * i);
            add_taps((uint32_t)at[1], columns[2 * i + 1], sums + 4 * i);
        }
    }
    for (int32_t i = 0; i < 4 * count; i += 4) {
        sums[i + 1] = parted(sums[i + 1], sums[i], at[0]);
        sums[i + 3] = parted(sums[i + 3], sums[i + 2], at[1]);
    }
    return at + 2;
}

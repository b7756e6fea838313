/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_units.h"

/* A word of filters is multiplied twice: as it is, which adds 256 times the second unit's products and the
 * first's to one sum, and its low bytes alone, which gives the first's. Their difference is 256 times the
 * second unit's sum, and fits 32 bits. So one unpacking serves four weights. */

#if THIMBLE_ASM
/* Four inputs times four units: 16 products in 19 instructions, loads between them where two go at a time. */
#if THIMBLE_DUAL_ISSUE
#define STEP                                                                                                 \
    "ldr     r5, [%[filters], #4]           \n"                                                              \
    "ldr     r6, [%[filters], #8]           \n"                                                              \
    "ldr     %[x], [%[input]], #4           \n"                                                              \
    "ldr     r8, [%[filters], #12]          \n"                                                              \
    "sxtb16  %[t], %[x]                     \n"                                                              \
    "ldr     r4, [%[filters]], #16          \n"                                                              \
    "sxtb16  %[x], %[x], ror #8             \n"                                                              \
    "smlad   %[s3], %[t], r6, %[s3]         \n"                                                              \
    "smlad   %[s1], %[t], r4, %[s1]         \n"                                                              \
    "sxtb16  r6, r6                         \n"                                                              \
    "smlad   %[s1], %[x], r5, %[s1]         \n"                                                              \
    "sxtb16  r4, r4                         \n"                                                              \
    "smlad   %[s2], %[t], r6, %[s2]         \n"                                                              \
    "smlad   %[s0], %[t], r4, %[s0]         \n"                                                              \
    "sxtb16  r5, r5                         \n"                                                              \
    "smlad   %[s3], %[x], r8, %[s3]         \n"                                                              \
    "sxtb16  r8, r8                         \n"                                                              \
    "smlad   %[s0], %[x], r5, %[s0]         \n"                                                              \
    "smlad   %[s2], %[x], r8, %[s2]         \n"
#else
#define STEP                                                                                                 \
    "ldr     %[x], [%[input]], #4          \n"                                                               \
    "ldr     r5, [%[filters], #4]          \n"                                                               \
    "ldr     r6, [%[filters], #8]          \n"                                                               \
    "ldr     r8, [%[filters], #12]         \n"                                                               \
    "ldr     r4, [%[filters]], #16         \n"                                                               \
    "sxtb16  %[t], %[x]                    \n"                                                               \
    "sxtb16  %[x], %[x], ror #8            \n"                                                               \
    "smlad   %[s1], %[t], r4, %[s1]        \n"                                                               \
    "smlad   %[s3], %[t], r6, %[s3]        \n"                                                               \
    "smlad   %[s1], %[x], r5, %[s1]        \n"                                                               \
    "smlad   %[s3], %[x], r8, %[s3]        \n"                                                               \
    "sxtb16  r4, r4                        \n"                                                               \
    "sxtb16  r6, r6                        \n"                                                               \
    "sxtb16  r5, r5                        \n"                                                               \
    "sxtb16  r8, r8                        \n"                                                               \
    "smlad   %[s0], %[t], r4, %[s0]        \n"                                                               \
    "smlad   %[s2], %[t], r6, %[s2]        \n"                                                               \
    "smlad   %[s0], %[x], r5, %[s0]        \n"                                                               \
    "smlad   %[s2], %[x], r8, %[s2]        \n"
#endif
#endif

static inline int32_t joined(int32_t first, int32_t second)
{
    return (int32_t)((uint32_t)first + ((uint32_t)second << 8));
}

static inline int32_t parted(int32_t first, int32_t both)
{
    return (int32_t)((uint32_t)both - (uint32_t)first) >> 8;
}

static inline void add(uint32_t even, uint32_t odd, const int32_t *filters, int32_t *first, int32_t *both)
{
    const uint32_t one = (uint32_t)filters[0], other = (uint32_t)filters[1];
    *both = thimble_smlad(odd, other, thimble_smlad(even, one, *both));
    *first = thimble_smlad(odd, thimble_sxtb16(other), thimble_smlad(even, thimble_sxtb16(one), *first));
}

THIMBLE_ASM_FUNCTION const int32_t *thimble_sum_joined_units_s8(const int8_t *input,
                                                                const int32_t *parameters,
                                                                int32_t depth,
                                                                int32_t *restrict sums)
{
    const int32_t *at = parameters + 4;
    int32_t s0 = parameters[0], s2 = parameters[2];
    int32_t s1 = joined(s0, parameters[1]), s3 = joined(s2, parameters[3]);
    int32_t n = depth / 4;
#if THIMBLE_ASM
    if (n > 0) {
        uint32_t x, t;
        __asm volatile("lsrs    %[n], %[n], #1     \n"
                       "bcc     1f                 \n"
                       "add     %[n], %[n], #1     \n"
                       "b       2f                 \n"
                       ".p2align 2                 \n"
                       "1:                         \n" STEP "2:                         \n" STEP
                       "subs    %[n], %[n], #1     \n"
                       "bne     1b                 \n"
                       : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [n] "+r"(n),
                         [filters] "+r"(at), [input] "+r"(input), [x] "=&r"(x), [t] "=&r"(t)
                       :
                       : "r4", "r5", "r6", "r8", "cc", "memory");
    }
#else
    for (; n > 0; n--, at += 4, input += 4) {
        const uint32_t x = thimble_read_word(input);
        add(thimble_sxtb16(x), thimble_sxtb16_ror8(x), at, &s0, &s1);
        add(thimble_sxtb16(x), thimble_sxtb16_ror8(x), at + 2, &s2, &s3);
    }
#endif
    if (depth & 3) {
        uint32_t x = 0;
        for (int32_t i = 0; i < (depth & 3); i++) {
            x |= (uint32_t)(uint8_t)input[i] << (8 * i);
        }
        add(thimble_sxtb16(x), thimble_sxtb16_ror8(x), at, &s0, &s1);
        add(thimble_sxtb16(x), thimble_sxtb16_ror8(x), at + 2, &s2, &s3);
        at += 4;
    }
    sums[0] = s0;
    sums[1] = parted(s0, s1);
    sums[2] = s2;
    sums[3] = parted(s2, s3);
    return at;
}

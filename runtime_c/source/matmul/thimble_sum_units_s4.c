/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_units.h"

#define NIBBLES 0x000F000FU

#if THIMBLE_ASM
/* Eight inputs of one unit: a product of two in two instructions. */
#define UNIT(sum)                                                                                            \
    "ldr     %[w], [%[filters]], #4         \n"                                                              \
    "and     %[t], %[mask], %[w]            \n"                                                              \
    "smlad   " sum ", %[t], %[p0], " sum "  \n"                                                              \
    "and     %[t], %[mask], %[w], lsr #4    \n"                                                              \
    "smlad   " sum ", %[t], %[p1], " sum "  \n"                                                              \
    "and     %[t], %[mask], %[w], lsr #8    \n"                                                              \
    "smlad   " sum ", %[t], %[p2], " sum "  \n"                                                              \
    "and     %[t], %[mask], %[w], lsr #12   \n"                                                              \
    "smlad   " sum ", %[t], %[p3], " sum "  \n"
#endif

/* Eight inputs as four pairs of int16: 0 and 2, 1 and 3, 4 and 6, 5 and 7. */
typedef struct {
    uint32_t pair[4];
} inputs;

static inline inputs unpacked(uint32_t first, uint32_t second)
{
    const inputs x = {{thimble_sxtb16(first), thimble_sxtb16_ror8(first), thimble_sxtb16(second),
                       thimble_sxtb16_ror8(second)}};
    return x;
}

/* Eight products of one unit. */
static inline int32_t product(const inputs *x, int32_t filter, int32_t sum)
{
    const uint32_t word = (uint32_t)filter;
    sum = thimble_smlad(word & NIBBLES, x->pair[0], sum);
    sum = thimble_smlad((word >> 4) & NIBBLES, x->pair[1], sum);
    sum = thimble_smlad((word >> 8) & NIBBLES, x->pair[2], sum);
    return thimble_smlad((word >> 12) & NIBBLES, x->pair[3], sum);
}

/* Up to four bytes, then zeros. */
static uint32_t read_part(const int8_t *input, int32_t left)
{
    uint32_t word = 0;
    for (int32_t i = 0; i < left && i < 4; i++) {
        word |= (uint32_t)(uint8_t)input[i] << (8 * i);
    }
    return word;
}

THIMBLE_ASM_FUNCTION const int32_t *thimble_sum_units_s4(
    const int8_t *input, const int32_t *parameters, int32_t depth, int32_t offset, int32_t *restrict sums)
{
    const int32_t *at = parameters + 4;
    int32_t s0 = thimble_add(parameters[0], offset), s1 = thimble_add(parameters[1], offset);
    int32_t s2 = thimble_add(parameters[2], offset), s3 = thimble_add(parameters[3], offset);
#if THIMBLE_ASM
    int32_t n = depth / 8;
    depth &= 7;
    if (n > 0) {
        uint32_t p0, p1, p2, p3, w, t;
        __asm volatile("1:                             \n"
                       "ldr     %[p0], [%[input]], #4  \n"
                       "ldr     %[p2], [%[input]], #4  \n"
                       "sxtb16  %[p1], %[p0], ror #8   \n"
                       "sxtb16  %[p0], %[p0]           \n"
                       "sxtb16  %[p3], %[p2], ror #8   \n"
                       "sxtb16  %[p2], %[p2]           \n" UNIT("%[s0]") UNIT("%[s1]") UNIT("%[s2]")
                           UNIT("%[s3]") "subs    %[n], %[n], #1         \n"
                                         "bne     1b                     \n"
                       : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [n] "+r"(n),
                         [filters] "+r"(at), [input] "+r"(input), [p0] "=&r"(p0), [p1] "=&r"(p1),
                         [p2] "=&r"(p2), [p3] "=&r"(p3), [w] "=&r"(w), [t] "=&r"(t)
                       : [mask] "r"(NIBBLES)
                       : "cc", "memory");
    }
#else
    for (; depth >= 8; depth -= 8, at += 4, input += 8) {
        const inputs x = unpacked(thimble_read_word(input), thimble_read_word(input + 4));
        s0 = product(&x, at[0], s0);
        s1 = product(&x, at[1], s1);
        s2 = product(&x, at[2], s2);
        s3 = product(&x, at[3], s3);
    }
#endif
    if (depth > 0) {
        const inputs x = unpacked(read_part(input, depth), read_part(input + 4, depth - 4));
        s0 = product(&x, at[0], s0);
        s1 = product(&x, at[1], s1);
        s2 = product(&x, at[2], s2);
        s3 = product(&x, at[3], s3);
        at += 4;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    return at;
}

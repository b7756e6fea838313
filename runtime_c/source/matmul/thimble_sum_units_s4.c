/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fours.h"
#include "thimble_units.h"

#if THIMBLE_ASM
/* Four inputs times four units: 16 products in 21 instructions. */
#define STEP                                                                                                 \
    "ldr     %[x], [%[input]], #4                  \n"                                                       \
    "ldr     %[w1], [%[filters], #4]               \n"                                                       \
    "ldr     %[w0], [%[filters]], #8               \n"                                                       \
    "sxtb16  %[t], %[x]                            \n"                                                       \
    "sxtb16  %[x], %[x], ror #8                    \n" THIMBLE_FOURS("%[w0]", "%[t]")                        \
        THIMBLE_FOURS("%[w1]", "%[x]")
#endif

/* Up to three bytes, then zeros. */
static uint32_t read_part(const int8_t *input, int32_t left)
{
    uint32_t word = 0;
    for (int32_t i = 0; i < left; i++) {
        word |= (uint32_t)(uint8_t)input[i] << (8 * i);
    }
    return word;
}

static void add(uint32_t x, const int32_t *at, int32_t *sums)
{
    thimble_add_fours((uint32_t)at[0], thimble_sxtb16(x), sums);
    thimble_add_fours((uint32_t)at[1], thimble_sxtb16_ror8(x), sums);
}

THIMBLE_ASM_FUNCTION const int32_t *thimble_sum_units_s4(
    const int8_t *input, const int32_t *parameters, int32_t depth, int32_t offset, int32_t *restrict sums)
{
    const int32_t *at = parameters + 4;
    int32_t s0 = thimble_add(parameters[0], offset), s2 = thimble_add(parameters[2], offset);
    int32_t n = depth / 4;
#if THIMBLE_ASM
    if (n > 0) {
        int32_t s1 = s0, s3 = s2;
        uint32_t x, t, u, w0, w1;
        __asm volatile(
            "lsrs    %[n], %[n], #1     \n"
            "bcc     1f                 \n"
            "add     %[n], %[n], #1     \n"
            "b       2f                 \n"
            ".p2align 2                 \n"
            "1:                         \n" STEP "2:                         \n" STEP
            "subs    %[n], %[n], #1     \n"
            "bne     1b                 \n"
            : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [n] "+r"(n), [filters] "+r"(at),
              [input] "+r"(input), [x] "=&r"(x), [t] "=&r"(t), [u] "=&r"(u), [w0] "=&r"(w0), [w1] "=&r"(w1)
            :
            : "cc", "memory");
        sums[0] = s0;
        sums[1] = s1;
        sums[2] = s2;
        sums[3] = s3;
    } else
#endif
    {
        sums[0] = sums[1] = s0;
        sums[2] = sums[3] = s2;
    }
    for (; n > 0; n--, at += 2, input += 4) {
        add(thimble_read_word(input), at, sums);
    }
    if ((depth & 3) != 0) {
        add(read_part(input, depth & 3), at, sums);
        at += 2;
    }
    sums[1] = thimble_part_fours(sums[1], sums[0], parameters[1]);
    sums[3] = thimble_part_fours(sums[3], sums[2], parameters[3]);
    return at;
}

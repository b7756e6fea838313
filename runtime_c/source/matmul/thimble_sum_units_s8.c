/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_units.h"

#if THIMBLE_ASM
/* Four inputs times four units: 16 products in 20 instructions. */
#define STEP                                                                                                 \
    "ldr     %[x], [%[input]], #4          \n"                                                               \
    "ldmia   %[filters]!, {r4, r5, r6, r8} \n"                                                               \
    "sxtb16  %[t], %[x]                    \n"                                                               \
    "sxtb16  %[x], %[x], ror #8            \n"                                                               \
    "sxtb16  %[w], r4                      \n"                                                               \
    "sxtb16  r4, r4, ror #8                \n"                                                               \
    "smlad   %[s0], %[w], %[t], %[s0]      \n"                                                               \
    "smlad   %[s0], r4, %[x], %[s0]        \n"                                                               \
    "sxtb16  %[w], r5                      \n"                                                               \
    "sxtb16  r5, r5, ror #8                \n"                                                               \
    "smlad   %[s1], %[w], %[t], %[s1]      \n"                                                               \
    "smlad   %[s1], r5, %[x], %[s1]        \n"                                                               \
    "sxtb16  %[w], r6                      \n"                                                               \
    "sxtb16  r6, r6, ror #8                \n"                                                               \
    "smlad   %[s2], %[w], %[t], %[s2]      \n"                                                               \
    "smlad   %[s2], r6, %[x], %[s2]        \n"                                                               \
    "sxtb16  %[w], r8                      \n"                                                               \
    "sxtb16  r8, r8, ror #8                \n"                                                               \
    "smlad   %[s3], %[w], %[t], %[s3]      \n"                                                               \
    "smlad   %[s3], r8, %[x], %[s3]        \n"
#endif

#if defined(__ARM_ARCH_6M__) && defined(__GNUC__) && !defined(__clang__)
#define WORDS_IN_ASSEMBLY 1
/* r2 to r5: four inputs, r6: weights, r7: a product. */
#define UNIT(sum)                                                                                            \
    "ldm r1!, {r6}\n\t"                                                                                      \
    "sxtb r7, r6\n\t"                                                                                        \
    "muls r7, r2\n\t"                                                                                        \
    "add " sum ", r7\n\t"                                                                                    \
    "asrs r6, r6, #8\n\t"                                                                                    \
    "sxtb r7, r6\n\t"                                                                                        \
    "muls r7, r3\n\t"                                                                                        \
    "add " sum ", r7\n\t"                                                                                    \
    "asrs r6, r6, #8\n\t"                                                                                    \
    "sxtb r7, r6\n\t"                                                                                        \
    "muls r7, r4\n\t"                                                                                        \
    "add " sum ", r7\n\t"                                                                                    \
    "asrs r6, r6, #8\n\t"                                                                                    \
    "muls r6, r5\n\t"                                                                                        \
    "add " sum ", r6\n\t"

/* Adds the products of `words` (at least one) aligned words of inputs with four units; returns what follows.
 */
__attribute__((naked, noinline)) static const int32_t *
add_words(const int8_t *input, const int32_t *at, int32_t words, int32_t *sums)
{
    __asm volatile(".syntax unified\n\t"
                   "push {r4, r5, r6, r7, lr}\n\t"
                   "mov r4, r8\n\t"
                   "mov r5, r9\n\t"
                   "mov r6, r10\n\t"
                   "mov r7, r11\n\t"
                   "push {r3, r4, r5, r6, r7}\n\t"
                   "mov r12, r2\n\t"
                   "ldm r3!, {r4, r5, r6, r7}\n\t"
                   "mov r8, r4\n\t"
                   "mov r9, r5\n\t"
                   "mov r10, r6\n\t"
                   "mov r11, r7\n"
                   "1:\n\t"
                   "ldm r0!, {r5}\n\t"
                   "sxtb r2, r5\n\t"
                   "asrs r5, r5, #8\n\t"
                   "sxtb r3, r5\n\t"
                   "asrs r5, r5, #8\n\t"
                   "sxtb r4, r5\n\t"
                   "asrs r5, r5, #8\n\t" UNIT("r8") UNIT("r9") UNIT("r10")
                       UNIT("r11") "mov r7, r12\n\t"
                                   "subs r7, r7, #1\n\t"
                                   "mov r12, r7\n\t"
                                   "bne 1b\n\t"
                                   "pop {r3}\n\t"
                                   "mov r4, r8\n\t"
                                   "mov r5, r9\n\t"
                                   "mov r6, r10\n\t"
                                   "mov r7, r11\n\t"
                                   "stm r3!, {r4, r5, r6, r7}\n\t"
                                   "mov r0, r1\n\t"
                                   "pop {r4, r5, r6, r7}\n\t"
                                   "mov r8, r4\n\t"
                                   "mov r9, r5\n\t"
                                   "mov r10, r6\n\t"
                                   "mov r11, r7\n\t"
                                   "pop {r4, r5, r6, r7, pc}\n\t");
}
#else
#define WORDS_IN_ASSEMBLY 0
#endif

static inline int32_t product(uint32_t even, uint32_t odd, int32_t filter, int32_t sum)
{
    sum = thimble_smlad(thimble_sxtb16((uint32_t)filter), even, sum);
    return thimble_smlad(thimble_sxtb16_ror8((uint32_t)filter), odd, sum);
}

THIMBLE_ASM_FUNCTION const int32_t *
thimble_sum_units_s8(const int8_t *input, const int32_t *parameters, int32_t depth, int32_t *restrict sums)
{
    const int32_t *at = parameters + 4;
    int32_t s0 = parameters[0], s1 = parameters[1], s2 = parameters[2], s3 = parameters[3];
    int32_t n = depth / 4;
#if THIMBLE_ASM
    if (n > 0) {
        uint32_t x, t, w;
        __asm volatile("lsrs    %[n], %[n], #1     \n"
                       "bcc     1f                 \n"
                       "add     %[n], %[n], #1     \n"
                       "b       2f                 \n"
                       "1:                         \n" STEP "2:                         \n" STEP
                       "subs    %[n], %[n], #1     \n"
                       "bne     1b                 \n"
                       : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [n] "+r"(n),
                         [filters] "+r"(at), [input] "+r"(input), [x] "=&r"(x), [t] "=&r"(t), [w] "=&r"(w)
                       :
                       : "r4", "r5", "r6", "r8", "cc", "memory");
    }
#else
#if WORDS_IN_ASSEMBLY
    if (n > 0 && ((uintptr_t)input & 3U) == 0) {
        int32_t four[4] = {s0, s1, s2, s3};
        at = add_words(input, at, n, four);
        input += 4 * n;
        n = 0;
        s0 = four[0];
        s1 = four[1];
        s2 = four[2];
        s3 = four[3];
    }
#endif
    for (; n > 0; n--, at += 4, input += 4) {
        const uint32_t x = thimble_read_word(input);
        const uint32_t even = thimble_sxtb16(x), odd = thimble_sxtb16_ror8(x);
        s0 = product(even, odd, at[0], s0);
        s1 = product(even, odd, at[1], s1);
        s2 = product(even, odd, at[2], s2);
        s3 = product(even, odd, at[3], s3);
    }
#endif
    if ((depth & 3) != 0) {
        uint32_t x = 0;
        for (int32_t i = 0; i < (depth & 3); i++) {
            x |= (uint32_t)(uint8_t)input[i] << (8 * i);
        }
        const uint32_t even = thimble_sxtb16(x), odd = thimble_sxtb16_ror8(x);
        s0 = product(even, odd, at[0], s0);
        s1 = product(even, odd, at[1], s1);
        s2 = product(even, odd, at[2], s2);
        s3 = product(even, odd, at[3], s3);
        at += 4;
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
    return at;
}

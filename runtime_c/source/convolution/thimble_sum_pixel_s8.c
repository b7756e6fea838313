/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_lone_pixel.h"

#if THIMBLE_ASM
/* Two channels' weights with four taps in t and u. */
#define TWO_CHANNELS(at, s0, s1)                                                                             \
    "ldrd    %[w0], %[w1], [" at "], #8        \n"                                                           \
    "sxtb16  %[v], %[w0]                       \n"                                                           \
    "sxtb16  %[w0], %[w0], ror #8              \n"                                                           \
    "smlad   " s0 ", %[t], %[v], " s0 "        \n"                                                           \
    "smlad   " s1 ", %[t], %[w0], " s1 "       \n"                                                           \
    "sxtb16  %[v], %[w1]                       \n"                                                           \
    "sxtb16  %[w1], %[w1], ror #8              \n"                                                           \
    "smlad   " s0 ", %[u], %[v], " s0 "        \n"                                                           \
    "smlad   " s1 ", %[u], %[w1], " s1 "       \n"

#define FOUR_TAPS                                                                                            \
    "ldr     %[u], [%[from]], #4               \n"                                                           \
    "sxtb16  %[t], %[u]                        \n"                                                           \
    "sxtb16  %[u], %[u], ror #8                \n" TWO_CHANNELS("%[first]", "%[s0]", "%[s1]")                \
        TWO_CHANNELS("%[second]", "%[s2]", "%[s3]")
#endif

THIMBLE_ASM_FUNCTION void thimble_sum_pixel_s8(const thimble_inside_shape *shape,
                                               const int8_t *input,
                                               const int32_t *first,
                                               const int32_t *second,
                                               int32_t *sums)
{
    int32_t s0 = first[0], s1 = first[1], s2 = second[0], s3 = second[1];
    first += 2;
    second += 2;
    for (int32_t row = shape->kernel_h; row > 0; row--, input += shape->row_step) {
        const int8_t *from = input;
        int32_t n = shape->row_words;
#if THIMBLE_ASM
        uint32_t t, u, v, w0, w1;
        __asm volatile("lsrs    %[n], %[n], #1             \n"
                       "bcc     1f                         \n"
                       "add     %[n], %[n], #1             \n"
                       "b       2f                         \n"
                       "1:                                 \n" FOUR_TAPS
                       "2:                                 \n" FOUR_TAPS
                       "subs    %[n], %[n], #1             \n"
                       "bne     1b                         \n"
                       : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [from] "+r"(from),
                         [first] "+r"(first), [second] "+r"(second), [n] "+r"(n), [t] "=&r"(t), [u] "=&r"(u),
                         [v] "=&r"(v), [w0] "=&r"(w0), [w1] "=&r"(w1)
                       :
                       : "cc", "memory");
#else
        for (; n > 0; n--, from += 4, first += 2, second += 2) {
            const uint32_t word = thimble_read_word(from);
            const uint32_t t = thimble_sxtb16(word), u = thimble_sxtb16_ror8(word);
            const uint32_t a = (uint32_t)first[0], b = (uint32_t)first[1];
            const uint32_t c = (uint32_t)second[0], d = (uint32_t)second[1];
            s0 = thimble_smlad(u, thimble_sxtb16(b), thimble_smlad(t, thimble_sxtb16(a), s0));
            s1 = thimble_smlad(u, thimble_sxtb16_ror8(b), thimble_smlad(t, thimble_sxtb16_ror8(a), s1));
            s2 = thimble_smlad(u, thimble_sxtb16(d), thimble_smlad(t, thimble_sxtb16(c), s2));
            s3 = thimble_smlad(u, thimble_sxtb16_ror8(d), thimble_smlad(t, thimble_sxtb16_ror8(c), s3));
        }
#endif
    }
    sums[0] = s0;
    sums[1] = s1;
    sums[2] = s2;
    sums[3] = s3;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_columns_s4.h"
#include "thimble_dsp.h"

#define ONES 0x00010001U

#if THIMBLE_ASM
/* Four taps of two columns. */
#define ADD(first, second)                                                                                   \
    "ldmia   %[from]!, {r4, r5, r6, r8}                      \n"                                             \
    "smlad   " first ", r4, %[ones], " first "               \n"                                             \
    "smlad   " second ", r6, %[ones], " second "             \n"                                             \
    "smlad   " first ", r5, %[ones], " first "               \n"                                             \
    "smlad   " second ", r8, %[ones], " second "             \n"
#endif

THIMBLE_ASM_FUNCTION void
thimble_column_offsets_s4(const uint32_t *columns, int32_t words, int32_t interleaved, int32_t *offsets)
{
#if THIMBLE_ASM
    if (interleaved == 4 && words > 0) {
        int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
        __asm volatile("1:                              \n" ADD("%[s0]", "%[s1]")
                           ADD("%[s2]", "%[s3]") "subs    %[n], %[n], #1          \n"
                                                 "bne     1b                      \n"
                       : [s0] "+r"(s0), [s1] "+r"(s1), [s2] "+r"(s2), [s3] "+r"(s3), [from] "+r"(columns),
                         [n] "+r"(words)
                       : [ones] "r"(ONES)
                       : "r4", "r5", "r6", "r8", "cc", "memory");
        offsets[0] = -8 * s0;
        offsets[1] = -8 * s1;
        offsets[2] = -8 * s2;
        offsets[3] = -8 * s3;
        return;
    }
#endif
    for (int32_t i = 0; i < interleaved; i++) {
        const uint32_t *from = columns + 2 * i;
        int32_t sum = 0;
        for (int32_t n = words; n > 0; n--, from += 2 * interleaved) {
            sum = thimble_smlad(from[1], ONES, thimble_smlad(from[0], ONES, sum));
        }
        offsets[i] = -8 * sum;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_column_steps.h"
#include "thimble_columns.h"
#include "thimble_requantize_s8.h"

/* A code of either channel that has no fast form. */
#define SIGNS ((int32_t)0x80008000)

THIMBLE_ASM_FUNCTION const int32_t *thimble_mat_mult_column_s8(const int32_t *parameters,
                                                               const uint32_t *columns,
                                                               int32_t words,
                                                               int32_t channels,
                                                               const thimble_requant *requant,
                                                               int8_t *output)
{
    const int32_t *at = parameters;
#if THIMBLE_ASM
    const int32_t narrow = thimble_narrow(requant);
    const int32_t low = requant->activation_min, high = requant->activation_max;

    for (; channels > 1 && (at[2 * words + 4] & SIGNS) == 0; channels -= 2, output += 2) {
        int32_t s00, s01, n = words;
        const uint32_t *column = columns;
        uint32_t w0, w1, t, rounding = (uint32_t)thimble_rounding(requant, 0);
        __asm volatile(
            THIMBLE_SUM_COLUMN "ldmia   %[at]!, {r4, r5, r6}              \n"
                               "sxth    %[w0], r6                         \n"
                               "asr     r6, r6, #16                       \n"
                               "lsl     %[w1], %[rounding], r6            \n"
                               "lsl     %[rounding], %[rounding], %[w0]   \n" THIMBLE_REQUANTIZE(
                                   "%[s00]", "r4", "%[rounding]", "%[w0]")
                                   THIMBLE_REQUANTIZE("%[s01]", "r5", "%[w1]", "r6")
            : [s00] "=&r"(s00), [s01] "=&r"(s01), [n] "+r"(n), [at] "+r"(at), [columns] "+r"(column),
              [w0] "=&r"(w0), [w1] "=&r"(w1), [t] "=&r"(t), [rounding] "+r"(rounding)
            :
            : "r4", "r5", "r6", "cc", "memory");
        if (narrow) {
            s00 = s00 < low ? low : (s00 > high ? high : s00);
            s01 = s01 < low ? low : (s01 > high ? high : s01);
        }
        output[0] = (int8_t)s00;
        output[1] = (int8_t)s01;
    }
#endif
    for (; channels > 0; channels -= 2, output += 2) {
        const int32_t pair = channels > 1 ? 2 : 1;
        at = thimble_mat_mult_columns_s8(at, columns, words, pair, requant, output, output);
    }
    return at;
}

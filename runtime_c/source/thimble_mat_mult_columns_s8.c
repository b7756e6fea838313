#include "thimble_conv.h"

#if THIMBLE_DSP && defined(__OPTIMIZE__)
/* Four taps of two columns and two channels: 16 products in 14 instructions. */
#define STEP                                                                                                 \
    "ldmia   %[columns]!, {r4, r5, r6, r8}     \n"                                                           \
    "ldrd    %[w0], %[w1], [%[filters]], #8    \n"                                                           \
    "sxtb16  %[t], %[w0]                       \n"                                                           \
    "sxtb16  %[w0], %[w0], ror #8              \n"                                                           \
    "smlad   %[s00], r4, %[t], %[s00]          \n"                                                           \
    "smlad   %[s10], r6, %[t], %[s10]          \n"                                                           \
    "smlad   %[s00], r5, %[w0], %[s00]         \n"                                                           \
    "smlad   %[s10], r8, %[w0], %[s10]         \n"                                                           \
    "sxtb16  %[t], %[w1]                       \n"                                                           \
    "sxtb16  %[w1], %[w1], ror #8              \n"                                                           \
    "smlad   %[s01], r4, %[t], %[s01]          \n"                                                           \
    "smlad   %[s11], r6, %[t], %[s11]          \n"                                                           \
    "smlad   %[s01], r5, %[w1], %[s01]         \n"                                                           \
    "smlad   %[s11], r8, %[w1], %[s11]         \n"
#endif

const int32_t *thimble_mat_mult_columns_s8(const int32_t *parameters,
                                           const uint32_t *columns,
                                           int32_t words,
                                           int32_t channels,
                                           const thimble_requant *requant,
                                           int8_t *output_0,
                                           int8_t *output_1)
{
    const int32_t *at = parameters;
    for (; channels > 0; channels -= 2) {
        int32_t s00 = at[0], s01 = at[1], s10 = s00, s11 = s01;
        at += 2;
#if THIMBLE_DSP && defined(__OPTIMIZE__)
        const uint32_t *column = columns;
        int32_t n = words;
        uint32_t w0, w1, t;
        __asm volatile(
            "lsrs    %[n], %[n], #1     \n"
            "bcc     1f                 \n"
            "add     %[n], %[n], #1     \n"
            "b       2f                 \n"
            "1:                         \n" STEP "2:                         \n" STEP
            "subs    %[n], %[n], #1     \n"
            "bne     1b                 \n"
            : [s00] "+r"(s00), [s01] "+r"(s01), [s10] "+r"(s10), [s11] "+r"(s11), [n] "+r"(n),
              [filters] "+r"(at), [columns] "+r"(column), [w0] "=&r"(w0), [w1] "=&r"(w1), [t] "=&r"(t)
            :
            : "r4", "r5", "r6", "r8", "cc", "memory");
#else
        for (int32_t i = 0; i < words; i++, at += 2) {
            const uint32_t *const column = columns + 4 * i;
            const uint32_t w0_even = thimble_sxtb16((uint32_t)at[0]),
                           w0_odd = thimble_sxtb16_ror8((uint32_t)at[0]);
            const uint32_t w1_even = thimble_sxtb16((uint32_t)at[1]),
                           w1_odd = thimble_sxtb16_ror8((uint32_t)at[1]);
            s00 = thimble_smlad(column[1], w0_odd, thimble_smlad(column[0], w0_even, s00));
            s01 = thimble_smlad(column[1], w1_odd, thimble_smlad(column[0], w1_even, s01));
            s10 = thimble_smlad(column[3], w0_odd, thimble_smlad(column[2], w0_even, s10));
            s11 = thimble_smlad(column[3], w1_odd, thimble_smlad(column[2], w1_even, s11));
        }
#endif
        const int32_t multiplier_0 = at[0], multiplier_1 = at[1];
        const int32_t shift_0 = thimble_bottom((uint32_t)at[2]), shift_1 = thimble_top((uint32_t)at[2]);
        at += 3;
        if (requant->form == THIMBLE_REQUANT_FAST && channels > 1) {
            const int32_t rounding_0 = thimble_rounding(requant, shift_0);
            const int32_t rounding_1 = thimble_rounding(requant, shift_1);
            output_1[0] = (int8_t)thimble_requantize_fast(s10, multiplier_0, shift_0, rounding_0);
            output_1[1] = (int8_t)thimble_requantize_fast(s11, multiplier_1, shift_1, rounding_1);
            output_0[0] = (int8_t)thimble_requantize_fast(s00, multiplier_0, shift_0, rounding_0);
            output_0[1] = (int8_t)thimble_requantize_fast(s01, multiplier_1, shift_1, rounding_1);
        } else {
            output_1[0] = thimble_requantize_s8(s10, multiplier_0, shift_0, requant);
            output_0[0] = thimble_requantize_s8(s00, multiplier_0, shift_0, requant);
            if (channels > 1) {
                output_1[1] = thimble_requantize_s8(s11, multiplier_1, shift_1, requant);
                output_0[1] = thimble_requantize_s8(s01, multiplier_1, shift_1, requant);
            }
        }
        output_0 += 2;
        output_1 += 2;
    }
    return at;
}

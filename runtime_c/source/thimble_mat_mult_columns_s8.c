#include "thimble_conv.h"

#if THIMBLE_ASM
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

/* Sums of columns 0 and 1 with channels 0 and 1. */
typedef struct {
    int32_t s00, s01, s10, s11;
} block_sums;

/* Reads two biases and 4 * words taps of two channels; returns what follows them. */
static inline const int32_t *THIMBLE_ASM_INLINE accumulate(const int32_t *filters,
                                                           const uint32_t *columns,
                                                           int32_t words,
                                                           block_sums *sums)
{
    int32_t s00 = filters[0], s01 = filters[1], s10 = s00, s11 = s01;
    filters += 2;
#if THIMBLE_ASM
    uint32_t w0, w1, t;
    __asm volatile(
        "lsrs    %[n], %[n], #1     \n"
        "bcc     1f                 \n"
        "add     %[n], %[n], #1     \n"
        "b       2f                 \n"
        "1:                         \n" STEP "2:                         \n" STEP
        "subs    %[n], %[n], #1     \n"
        "bne     1b                 \n"
        : [s00] "+r"(s00), [s01] "+r"(s01), [s10] "+r"(s10), [s11] "+r"(s11), [n] "+r"(words),
          [filters] "+r"(filters), [columns] "+r"(columns), [w0] "=&r"(w0), [w1] "=&r"(w1), [t] "=&r"(t)
        :
        : "r4", "r5", "r6", "r8", "cc", "memory");
#else
    for (; words > 0; words--, filters += 2, columns += 4) {
        const uint32_t w0 = (uint32_t)filters[0], w1 = (uint32_t)filters[1];
        const uint32_t w0_even = thimble_sxtb16(w0), w0_odd = thimble_sxtb16_ror8(w0);
        const uint32_t w1_even = thimble_sxtb16(w1), w1_odd = thimble_sxtb16_ror8(w1);
        s00 = thimble_smlad(columns[1], w0_odd, thimble_smlad(columns[0], w0_even, s00));
        s01 = thimble_smlad(columns[1], w1_odd, thimble_smlad(columns[0], w1_even, s01));
        s10 = thimble_smlad(columns[3], w0_odd, thimble_smlad(columns[2], w0_even, s10));
        s11 = thimble_smlad(columns[3], w1_odd, thimble_smlad(columns[2], w1_even, s11));
    }
#endif
    sums->s00 = s00;
    sums->s01 = s01;
    sums->s10 = s10;
    sums->s11 = s11;
    return filters;
}

/* Outputs of a block of which a channel is missing or has no fast form. */
static void __attribute__((noinline)) put_any(const block_sums *sums,
                                              const int32_t *scaling,
                                              int32_t channels,
                                              const thimble_requant *requant,
                                              int8_t *to_0,
                                              int8_t *to_1)
{
    const int32_t code_0 = thimble_bottom((uint32_t)scaling[2]), code_1 = thimble_top((uint32_t)scaling[2]);
    to_1[0] = thimble_requantize_s8(sums->s10, scaling[0], code_0, requant);
    to_0[0] = thimble_requantize_s8(sums->s00, scaling[0], code_0, requant);
    if (channels > 1) {
        to_1[1] = thimble_requantize_s8(sums->s11, scaling[1], code_1, requant);
        to_0[1] = thimble_requantize_s8(sums->s01, scaling[1], code_1, requant);
    }
}

THIMBLE_ASM_FUNCTION const int32_t *thimble_mat_mult_columns_s8(const int32_t *parameters,
                                                                const uint32_t *columns,
                                                                int32_t words,
                                                                int32_t channels,
                                                                const thimble_requant *requant,
                                                                int8_t *output_0,
                                                                int8_t *output_1)
{
    const int32_t *at = parameters;
    const int32_t pair_distance = (int32_t)(output_1 - output_0);
    const int32_t rounding = thimble_rounding(requant, 0);
    const int32_t narrow = thimble_narrow(requant);
    int8_t *to = output_0;

    for (; channels > 0; channels -= 2) {
        block_sums sums;
        at = accumulate(at, columns, words, &sums);
        const int32_t multiplier_0 = at[0], multiplier_1 = at[1], codes = at[2];
        const int32_t code_0 = thimble_bottom((uint32_t)codes), code_1 = codes >> 16;
        at += 3;
        if ((codes & (int32_t)0x80008000) != 0 || channels == 1) {
            const block_sums kept = sums;
            put_any(&kept, at - 3, channels, requant, to, to + pair_distance);
            to += 2;
            continue;
        }
        const int32_t rounding_0 = (int32_t)((uint32_t)rounding << code_0);
        const int32_t rounding_1 = (int32_t)((uint32_t)rounding << code_1);
        int32_t v00 = thimble_requantize_fast(sums.s00, multiplier_0, code_0, rounding_0);
        int32_t v01 = thimble_requantize_fast(sums.s01, multiplier_1, code_1, rounding_1);
        int32_t v10 = thimble_requantize_fast(sums.s10, multiplier_0, code_0, rounding_0);
        int32_t v11 = thimble_requantize_fast(sums.s11, multiplier_1, code_1, rounding_1);
        if (narrow) {
            const int32_t low = requant->activation_min, high = requant->activation_max;
            v00 = thimble_clamp(v00, low, high);
            v01 = thimble_clamp(v01, low, high);
            v10 = thimble_clamp(v10, low, high);
            v11 = thimble_clamp(v11, low, high);
        }
        int8_t *const to_1 = to + pair_distance;
        to_1[0] = (int8_t)v10;
        to_1[1] = (int8_t)v11;
        to[0] = (int8_t)v00;
        to[1] = (int8_t)v01;
        to += 2;
    }
    return at;
}

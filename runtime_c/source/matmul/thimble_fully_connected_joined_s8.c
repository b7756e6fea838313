/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_matmul.h"
#include "thimble_requantize_s8.h"
#include "thimble_units.h"

/* A word of filters has two taps of two units, 256 times the second unit's and the first's together. As it
 * is, times the inputs, it adds 256 times the second unit's products and the first's to one sum. The first's
 * alone take one multiplication for two words, by Winograd's inner product (1968):
 *
 *     (x1 + w0) * (x0 + w1) = x0 * w0 + x1 * w1 + x0 * x1 + w0 * w1
 *
 * The products of weights are in the bias; those of inputs are the same for all units, and are summed once a
 * row. The difference of the two sums is 256 times the second unit's, and fits 32 bits; all else may wrap. */

#if THIMBLE_ASM
/* Four inputs times four units: 16 products in 17 instructions, without the load of the inputs in 16. */
#define TURN(x)                                                                                              \
    "ldr     r5, [%[filters], #4]          \n"                                                               \
    "ldr     r6, [%[filters], #8]          \n"                                                               \
    "ldr     r8, [%[filters], #12]         \n"                                                               \
    "ldr     r4, [%[filters]], #16         \n"                                                               \
    "sxtb16  %[t], " x "                   \n"                                                               \
    "sxtb16  " x ", " x ", ror #8          \n"                                                               \
    "smlad   %[s1], %[t], r4, %[s1]        \n"                                                               \
    "smlad   %[s3], %[t], r6, %[s3]        \n"                                                               \
    "smlad   %[s1], " x ", r5, %[s1]       \n"                                                               \
    "smlad   %[s3], " x ", r8, %[s3]       \n"                                                               \
    "sxtab16 r4, " x ", r4                 \n"                                                               \
    "sxtab16 r5, %[t], r5                  \n"                                                               \
    "sxtab16 r6, " x ", r6                 \n"                                                               \
    "sxtab16 r8, %[t], r8                  \n"                                                               \
    "smlad   %[s0], r4, r5, %[s0]          \n"                                                               \
    "smlad   %[s2], r6, r8, %[s2]          \n"
#define LONE_TURN "ldr     %[x], [%[input]], #4 \n" TURN("%[x]")
#if THIMBLE_DUAL_ISSUE
/* Two a cycle, all of them. */
#define TWO_TURNS                                                                                            \
    "ldr     r6, [%[filters], #8]       \n"                                                                  \
    "ldr     %[y], [%[input], #4]       \n"                                                                  \
    "ldr     %[x], [%[input]], #8       \n"                                                                  \
    "sxtb16  %[t], %[x]                 \n"                                                                  \
    "ldr     r5, [%[filters], #4]       \n"                                                                  \
    "sxtb16  %[x], %[x], ror #8         \n"                                                                  \
    "smlad   %[s3], %[t], r6, %[s3]     \n"                                                                  \
    "sxtab16 r6, %[x], r6               \n"                                                                  \
    "ldr     r8, [%[filters], #12]      \n"                                                                  \
    "smlad   %[s1], %[x], r5, %[s1]     \n"                                                                  \
    "ldr     r4, [%[filters]], #16      \n"                                                                  \
    "sxtab16 r5, %[t], r5               \n"                                                                  \
    "smlad   %[s3], %[x], r8, %[s3]     \n"                                                                  \
    "sxtab16 r8, %[t], r8               \n"                                                                  \
    "smlad   %[s1], %[t], r4, %[s1]     \n"                                                                  \
    "sxtab16 r4, %[x], r4               \n"                                                                  \
    "smlad   %[s2], r6, r8, %[s2]       \n"                                                                  \
    "ldr     r8, [%[filters], #12]      \n"                                                                  \
    "smlad   %[s0], r4, r5, %[s0]       \n"                                                                  \
    "sxtb16  %[t], %[y]                 \n"                                                                  \
    "ldr     r6, [%[filters], #8]       \n"                                                                  \
    "sxtb16  %[y], %[y], ror #8         \n"                                                                  \
    "ldr     r5, [%[filters], #4]       \n"                                                                  \
    "smlad   %[s3], %[t], r6, %[s3]     \n"                                                                  \
    "ldr     r4, [%[filters]], #16      \n"                                                                  \
    "sxtab16 r6, %[y], r6               \n"                                                                  \
    "smlad   %[s1], %[y], r5, %[s1]     \n"                                                                  \
    "sxtab16 r5, %[t], r5               \n"                                                                  \
    "smlad   %[s3], %[y], r8, %[s3]     \n"                                                                  \
    "sxtab16 r8, %[t], r8               \n"                                                                  \
    "smlad   %[s1], %[t], r4, %[s1]     \n"                                                                  \
    "sxtab16 r4, %[y], r4               \n"                                                                  \
    "smlad   %[s2], r6, r8, %[s2]       \n"                                                                  \
    "smlad   %[s0], r4, r5, %[s0]       \n"
#else
#define TWO_TURNS                                                                                            \
    "ldr     %[y], [%[input], #4]          \n"                                                               \
    "ldr     %[x], [%[input]], #8          \n" TURN("%[x]") TURN("%[y]")
#endif
#endif

/* A row of outputs, four units at a time. `words` and `pairs` (sum_pairs) of its input; `quick`: so many
 * fours come first whose sums are scaled by `multiplier`, `code` and `rounding`, to int8's own range
 * (thimble_requantize_once_fast). */
typedef struct {
    const int8_t *input;
    int8_t *output;
    int32_t words, pairs, quick;
    int32_t multiplier, code, rounding;
} row_of_units;

/* Sums of two joined units each. */
typedef struct {
    int32_t first, both, third, last;
} joined_sums;

static inline int32_t less(int32_t sum, int32_t other)
{
    return (int32_t)((uint32_t)sum - (uint32_t)other);
}

static inline int32_t parted(int32_t first, int32_t both)
{
    return less(both, first) >> 8;
}

static inline void
add(uint32_t even, uint32_t odd, const int32_t *filters, int32_t *restrict first, int32_t *restrict both)
{
    const uint32_t one = (uint32_t)filters[0], other = (uint32_t)filters[1];
    *both = thimble_smlad(odd, other, thimble_smlad(even, one, *both));
    *first = thimble_smlad(thimble_sxtab16(odd, one), thimble_sxtab16(even, other), *first);
}

/* Up to three bytes, then zeros. */
static uint32_t read_part(const int8_t *input, int32_t left)
{
    uint32_t word = 0;
    for (int32_t i = 0; i < left; i++) {
        word |= (uint32_t)(uint8_t)input[i] << (8 * i);
    }
    return word;
}

static inline int32_t add_pair(uint32_t x, int32_t sum)
{
    return thimble_smlad(thimble_sxtb16(x), thimble_sxtb16_ror8(x), sum);
}

/* The sum of products of neighbours, two by two. */
static int32_t sum_pairs(const int8_t *input, int32_t depth)
{
    int32_t sum = 0;
    for (; depth >= 8; depth -= 8, input += 8) {
        const uint32_t x = thimble_read_word(input), y = thimble_read_word(input + 4);
        sum = add_pair(y, add_pair(x, sum));
    }
    if (depth >= 4) {
        sum = add_pair(thimble_read_word(input), sum);
        input += 4;
    }
    return add_pair(read_part(input, depth & 3), sum);
}

/* Outputs of the quick units of a row, if it has any; otherwise sums of the next four over whole words.
 * Returns what follows their filters. */
static THIMBLE_ASM_INLINE inline const int32_t *
next_units(row_of_units *row, const int32_t *at, joined_sums *sums)
{
    int32_t s0, s1, s2, s3;
#if THIMBLE_ASM
    const int8_t *input;
    int32_t n;
    uint32_t x, y, t;
    /* Of each four units one turn, two turns, then four at a time; the steps of scaling take turns too, as
     * each waits for the one before it. */
    __asm volatile("6:                                  \n"
                   "ldr     %[n], %[words]              \n"
                   "ldr     %[input], %[from]           \n"
                   "ldr     %[x], %[pairs]              \n"
                   "ldr     %[s1], [%[filters], #4]     \n"
                   "ldr     %[s2], [%[filters], #8]     \n"
                   "ldr     %[s3], [%[filters], #12]    \n"
                   "ldr     %[s0], [%[filters]], #16    \n"
                   "lsrs    %[n], %[n], #1              \n"
                   "sub     %[s2], %[s2], %[x]          \n"
                   "sub     %[s0], %[s0], %[x]          \n"
                   "bcc     1f                          \n" LONE_TURN "1:                                  \n"
                   "lsrs    %[n], %[n], #1              \n"
                   "bcc     2f                          \n" TWO_TURNS "2:                                  \n"
                   "cmp     %[n], #0                    \n"
                   "beq     4f                          \n"
                   ".p2align 2                          \n"
                   "3:                                  \n" TWO_TURNS TWO_TURNS
                   "subs    %[n], %[n], #1              \n"
                   "bne     3b                          \n"
                   "4:                                  \n"
                   "ldr     %[n], %[quick]              \n"
                   "ldr     r4, %[multiplier]           \n"
                   "ldr     r5, %[rounding]             \n"
                   "ldr     r6, %[code]                 \n"
                   "ldr     %[t], %[output]             \n"
                   "cbz     %[n], 5f                    \n"
                   "sub     %[s1], %[s1], %[s0]         \n"
                   "sub     %[s3], %[s3], %[s2]         \n"
                   "lsl     %[s0], %[s0], #1            \n"
                   "asr     %[s1], %[s1], #7            \n" /* twice the sum */
                   "lsl     %[s2], %[s2], #1            \n"
                   "asr     %[s3], %[s3], #7            \n"
                   "smmla   %[s0], %[s0], r4, r5        \n"
                   "smmla   %[s1], %[s1], r4, r5        \n"
                   "smmla   %[s2], %[s2], r4, r5        \n"
                   "asr     %[s0], %[s0], r6            \n"
                   "smmla   %[s3], %[s3], r4, r5        \n"
                   "asr     %[s1], %[s1], r6            \n"
                   "ssat    %[s0], #8, %[s0], asr #1    \n"
                   "asr     %[s2], %[s2], r6            \n"
                   "ssat    %[s1], #8, %[s1], asr #1    \n"
                   "asr     %[s3], %[s3], r6            \n"
                   "strb    %[s1], [%[t], #1]           \n"
                   "ssat    %[s2], #8, %[s2], asr #1    \n"
                   "strb    %[s2], [%[t], #2]           \n"
                   "ssat    %[s3], #8, %[s3], asr #1    \n"
                   "strb    %[s3], [%[t], #3]           \n"
                   "strb    %[s0], [%[t]], #4           \n"
                   "subs    %[n], %[n], #1              \n"
                   "str     %[t], %[output]             \n"
                   "str     %[n], %[quick]              \n"
                   "bne     6b                          \n"
                   "5:                                  \n"
                   : [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [s3] "=&r"(s3), [n] "=&l"(n),
                     [filters] "+r"(at), [input] "=&r"(input), [x] "=&r"(x), [y] "=&r"(y), [t] "=&r"(t),
                     [output] "+m"(row->output), [quick] "+m"(row->quick)
                   : [words] "m"(row->words), [from] "m"(row->input), [pairs] "m"(row->pairs),
                     [multiplier] "m"(row->multiplier), [rounding] "m"(row->rounding), [code] "m"(row->code)
                   : "r4", "r5", "r6", "r8", "cc", "memory");
#else
    do {
        const int8_t *input = row->input;
        s0 = less(at[0], row->pairs);
        s1 = at[1];
        s2 = less(at[2], row->pairs);
        s3 = at[3];
        at += 4;
        for (int32_t n = row->words; n > 0; n--, at += 4, input += 4) {
            const uint32_t x = thimble_read_word(input);
            add(thimble_sxtb16(x), thimble_sxtb16_ror8(x), at, &s0, &s1);
            add(thimble_sxtb16(x), thimble_sxtb16_ror8(x), at + 2, &s2, &s3);
        }
        if (row->quick != 0) {
            const int32_t sums_of_four[4] = {s0, parted(s0, s1), s2, parted(s2, s3)};
            for (int32_t i = 0; i < 4; i++) {
                *row->output++ = (int8_t)thimble_requantize_once_fast(sums_of_four[i], row->multiplier,
                                                                      row->code, row->rounding);
            }
            row->quick--;
        }
    } while (row->quick != 0);
#endif
    *sums = (joined_sums){s0, s1, s2, s3};
    return at;
}

THIMBLE_ASM_FUNCTION void thimble_fully_connected_joined_s8(int32_t rows,
                                                            int32_t depth,
                                                            int32_t units,
                                                            const thimble_requant *requant,
                                                            const int8_t *input,
                                                            const int32_t *parameters,
                                                            const int32_t *common,
                                                            int8_t *output)
{
    row_of_units row = {.output = output, .words = depth / 4};
    int32_t quick = 0;
    if (common && (common[8] & 0x80) == 0 && (depth & 3) == 0 && !thimble_narrow(requant)) {
        quick = units / 4;
        row.multiplier = common[0];
        row.code = common[8] & 0xFF;
        row.rounding = (int32_t)((uint32_t)(2 * requant->output_offset + 1) << row.code);
    }
    for (; rows > 0; rows--, input += depth) {
        const int32_t *at = parameters;
        row.input = input;
        row.pairs = sum_pairs(input, depth);
        row.quick = quick;
        for (int32_t left = units; left > 0;) {
            joined_sums sums;
            const int32_t before = row.quick;
            at = next_units(&row, at, &sums);
            if (before != 0) {
                left -= 4 * before;
                continue;
            }
            if ((depth & 3) != 0) {
                const uint32_t x = read_part(input + (depth & ~3), depth & 3);
                add(thimble_sxtb16(x), thimble_sxtb16_ror8(x), at, &sums.first, &sums.both);
                add(thimble_sxtb16(x), thimble_sxtb16_ror8(x), at + 2, &sums.third, &sums.last);
                at += 4;
            }
            const int32_t four[4] = {sums.first, parted(sums.first, sums.both), sums.third,
                                     parted(sums.third, sums.last)};
            row.output =
                thimble_put_units_s8(four, common ? common : at, left < 4 ? left : 4, requant, row.output);
            at += common ? 0 : 9;
            left -= 4;
        }
    }
}

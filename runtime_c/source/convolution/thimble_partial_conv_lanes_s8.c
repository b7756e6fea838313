/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_sums.h"
#include "thimble_lane_windows.h"
#include "thimble_sums.h"

typedef struct {
    const int32_t *parameters, *sums;
    int32_t taps, channels;
    int32_t *output;
} products;

/* to = what the parts before have summed, or 0, plus the biases. */
static inline void put_biased(const int32_t *biases, const int32_t *sums, int32_t channels, int32_t *to)
{
#if THIMBLE_MVE
    for (; channels > 0; channels -= 4, to += 4, biases += 4) {
        const mve_pred16_t lanes = vctp32q((uint32_t)channels);
        int32x4_t sum = vldrwq_s32(biases);
        if (sums) {
            sum = vaddq_s32(sum, vldrwq_z_s32(sums, lanes));
            sums += 4;
        }
        vstrwq_p_s32(to, sum, lanes);
    }
#else
    for (int32_t i = 0; i < channels; i++) {
        to[i] = thimble_add(biases[i], sums ? sums[i] : 0);
    }
#endif
}

#if THIMBLE_MVE && THIMBLE_ASM
/* Adds the sums in q4 and q5 to those of both pixels, which may be one. */
#define ADDED                                                                                                \
    "vldrw.u32     q6, [%[to]]                  \n"                                                          \
    "vldrw.u32     q7, [%[beside]]              \n"                                                          \
    "vadd.i32      q4, q4, q6                   \n"                                                          \
    "vadd.i32      q5, q5, q7                   \n"                                                          \
    "vstrw.32      q4, [%[to]], #16             \n"                                                          \
    "vstrw.32      q5, [%[beside]], #16         \n"

THIMBLE_ASM_FUNCTION static void add_one_vector(const int32_t *filters,
                                                const int8_t *column_0,
                                                const int8_t *column_1,
                                                int32_t fours,
                                                int32_t *output_0,
                                                int32_t *output_1)
{
    int32_t s00, s01, s10, s11;
    __asm volatile("vldrb.8       q0, [%[x0]]                  \n"
                   "vldrb.8       q1, [%[x1]]                  \n"
                   "dls           lr, %[fours]                 \n"
                   "1:                                         \n" ONE_VECTOR TO_LANES("2", "0")
                       ONE_VECTOR TO_LANES("3", "1") ADDED "le            lr, 1b                       \n"
                   : [s00] "=&Te"(s00), [s01] "=&Te"(s01), [s10] "=&Te"(s10), [s11] "=&Te"(s11),
                     [at] "+l"(filters), [to] "+l"(output_0), [beside] "+l"(output_1)
                   : [x0] "r"(column_0), [x1] "r"(column_1), [fours] "r"(fours)
                   : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory", "lr", "cc");
}

THIMBLE_ASM_FUNCTION static void add_vectors(const int32_t *filters,
                                             const int8_t *column_0,
                                             const int8_t *column_1,
                                             int32_t bytes,
                                             int32_t fours,
                                             int32_t *output_0,
                                             int32_t *output_1)
{
    int32_t s00, s01, s10, s11;
    __asm volatile("2:                                         \n" VECTORS TO_LANES("2", "0")
                       VECTORS TO_LANES("3", "1") ADDED "subs          %[fours], #1                 \n"
                                                        "bne           2b                           \n"
                   : [s00] "=&Te"(s00), [s01] "=&Te"(s01), [s10] "=&Te"(s10), [s11] "=&Te"(s11),
                     [at] "+l"(filters), [to] "+l"(output_0), [beside] "+l"(output_1), [x0] "+r"(column_0),
                     [x1] "+r"(column_1), [fours] "+r"(fours)
                   : [bytes] "r"(bytes), [more] "r"((bytes >> 4) - 1)
                   : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory", "lr", "cc");
}
#endif

/* Fours of channels, and the last ones. */
static void add_any(const int32_t *filters,
                    const int8_t *column_0,
                    const int8_t *column_1,
                    int32_t taps,
                    int32_t channels,
                    int32_t *output_0,
                    int32_t *output_1)
{
    for (; channels > 0; channels -= 4, output_0 += 4, output_1 += 4) {
        int32_t sums[8];
        filters = thimble_sum_lanes_s8(filters, column_0, column_1, taps, sums);
        for (int32_t i = 0; i < channels && i < 4; i++) {
            const int32_t second = thimble_add(output_1[i], sums[4 + i]);
            output_0[i] = thimble_add(output_0[i], sums[i]); /* which may be output_1[i] */
            output_1[i] = second;
        }
    }
}

static inline void
put_pair(const void *context, int8_t *column_0, int8_t *column_1, int32_t first, int32_t second)
{
    const products *const of = context;
    const int32_t *filters = of->parameters + ((of->channels + 3) & ~3);
    int32_t *output_0 = of->output + first, *output_1 = of->output + second;
    int32_t channels = of->channels;
    put_biased(of->parameters, of->sums ? of->sums + first : NULL, channels, output_0);
    if (second != first) {
        put_biased(of->parameters, of->sums ? of->sums + second : NULL, channels, output_1);
    }
#if THIMBLE_MVE && THIMBLE_ASM
    const int32_t fours = channels >> 2;
    if (fours) {
        const int32_t bytes = thimble_whole_vectors(of->taps);
        if (of->taps <= THIMBLE_LANES) {
            add_one_vector(filters, column_0, column_1, fours, output_0, output_1);
        } else {
            add_vectors(filters, column_0, column_1, bytes, fours, output_0, output_1);
        }
        filters += fours * bytes;
        output_0 += 4 * fours;
        output_1 += 4 * fours;
        channels &= 3;
    }
#endif
    add_any(filters, column_0, column_1, of->taps, channels, output_0, output_1);
}

void thimble_partial_conv_lanes_s8(const thimble_conv_shape *shape,
                                   const int8_t *input,
                                   const int32_t *parameters,
                                   void *scratch,
                                   const int32_t *sums,
                                   int32_t *output)
{
    const int32_t taps = shape->kernel_h * shape->kernel_w * shape->depth;
    const products of = {parameters, sums, taps, shape->output_c, output};
    thimble_walk_pairs(shape, input, scratch, (taps + 3) & ~3, put_pair, &of);
}

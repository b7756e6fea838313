/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_lane_sums.h"
#include "thimble_lane_windows.h"

/* What the weights' zero point adds to all sums of a column, in a vector before it. */
#define ADDED 4

typedef struct {
    const thimble_requant *requant;
    const int32_t *parameters;
    int32_t taps, channels, quick, weight_zero_point;
    int8_t *output;
} products;

#if THIMBLE_MVE && THIMBLE_ASM
#define SUMS_RAISED                                                                                          \
    "vldrw.u32     q6, [%[x0], #-16]            \n"                                                          \
    "vldrw.u32     q7, [%[x1], #-16]            \n"                                                          \
    "vadd.i32      q4, q4, q6                   \n"                                                          \
    "vadd.i32      q5, q5, q7                   \n"

/* As thimble_mat_mult_lanes_s8 does whole fours of channels. */
THIMBLE_ASM_FUNCTION static void put_one_vector(const int32_t *parameters,
                                                const int8_t *column_0,
                                                const int8_t *column_1,
                                                int32_t fours,
                                                int8_t *output_0,
                                                int8_t *output_1)
{
    int32_t s00, s01, s10, s11;
    __asm volatile("vldrb.8       q0, [%[x0]]                  \n"
                   "vldrb.8       q1, [%[x1]]                  \n"
                   "dls           lr, %[fours]                 \n"
                   "1:                                         \n" ONE_VECTOR TO_LANES("2", "0")
                       ONE_VECTOR TO_LANES("3", "1") SUMS_RAISED SCALED
                   "le            lr, 1b                       \n"
                   "b             7f                           \n" TWICE
                   "7:                                         \n"
                   : [s00] "=&Te"(s00), [s01] "=&Te"(s01), [s10] "=&Te"(s10), [s11] "=&Te"(s11),
                     [at] "+l"(parameters), [to] "+l"(output_0), [beside] "+l"(output_1)
                   : [x0] "r"(column_0), [x1] "r"(column_1), [fours] "r"(fours)
                   : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory", "lr", "cc");
}

THIMBLE_ASM_FUNCTION static void put_vectors(const int32_t *parameters,
                                             const int8_t *column_0,
                                             const int8_t *column_1,
                                             int32_t bytes,
                                             int32_t fours,
                                             int8_t *output_0,
                                             int8_t *output_1)
{
    int32_t s00, s01, s10, s11;
    __asm volatile("2:                                         \n" VECTORS TO_LANES("2", "0")
                       VECTORS TO_LANES("3", "1") SUMS_RAISED SCALED
                   "subs          %[fours], #1                 \n"
                   "bne           2b                           \n"
                   "b             7f                           \n" TWICE
                   "7:                                         \n"
                   : [s00] "=&Te"(s00), [s01] "=&Te"(s01), [s10] "=&Te"(s10), [s11] "=&Te"(s11),
                     [at] "+l"(parameters), [to] "+l"(output_0), [beside] "+l"(output_1), [x0] "+r"(column_0),
                     [x1] "+r"(column_1), [fours] "+r"(fours)
                   : [bytes] "r"(bytes), [more] "r"((bytes >> 4) - 1)
                   : "q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "memory", "lr", "cc");
}
#endif

/* Fours of channels of any scaling, and the last channels. */
static void put_any(const products *of,
                    const int32_t *parameters,
                    int32_t channels,
                    const int8_t *const *columns,
                    const int32_t *added,
                    int8_t *const *outputs)
{
    for (int32_t channel = 0; channel < channels; channel += 4) {
        const int32_t left = channels - channel < 4 ? channels - channel : 4;
        int32_t sums[8];
        parameters = thimble_sum_lanes_s8(parameters, columns[0], columns[1], of->taps, sums);
        for (int32_t i = 0; i < 8; i++) {
            sums[i] = thimble_add(sums[i], added[i >> 2]);
        }
        int8_t results[8];
        thimble_put_any_lanes_s8(sums, 2, parameters, of->requant, results, 4);
        (void)memcpy(outputs[0] + channel, results, (size_t)left);
        (void)memcpy(outputs[1] + channel, results + 4, (size_t)left);
        parameters += THIMBLE_LANE_SCALING;
    }
}

/* Puts before a column what the zero point of the weights adds: minus its product with the sum of the taps.
 */
static inline int32_t put_added(const int8_t *column, int32_t taps, int32_t weight_zero_point, int8_t *before)
{
    int32_t sum = 0;
#if THIMBLE_MVE && THIMBLE_ASM
    __asm volatile("wlstp.8       lr, %[taps], 2f         \n"
                   "1:                                   \n"
                   "vldrb.8       q0, [%[column]], #16    \n"
                   "vaddva.s8     %[sum], q0              \n"
                   "letp          lr, 1b                 \n"
                   "2:                                   \n"
                   : [column] "+r"(column), [sum] "+Te"(sum)
                   : [taps] "r"(taps)
                   : "q0", "memory", "lr");
#else
    for (; taps > 0; taps--) {
        sum += *column++;
    }
#endif
    const int32_t added = thimble_multiply(-weight_zero_point, sum);
    const int32_t four[ADDED] = {added, added, added, added};
    (void)memcpy(before, four, sizeof(four));
    return added;
}

static inline void
put_pair(const void *context, int8_t *column_0, int8_t *column_1, int32_t first, int32_t second)
{
    const products *const of = context;
    const int32_t size = ADDED * (int32_t)sizeof(int32_t);
    const int8_t *const columns[2] = {column_0, column_1};
    const int32_t added[2] = {put_added(column_0, of->taps, of->weight_zero_point, column_0 - size),
                              put_added(column_1, of->taps, of->weight_zero_point, column_1 - size)};
    int8_t *outputs[2] = {of->output + first, of->output + second};
    const int32_t *parameters = of->parameters;
    int32_t channels = of->channels;
#if THIMBLE_MVE && THIMBLE_ASM
    const int32_t fours = channels >> 2;
    if (of->quick && fours) {
        const int32_t bytes = thimble_whole_vectors(of->taps);
        if (of->taps <= THIMBLE_LANES) {
            put_one_vector(parameters, column_0, column_1, fours, outputs[0], outputs[1]);
        } else {
            put_vectors(parameters, column_0, column_1, bytes, fours, outputs[0], outputs[1]);
        }
        if (thimble_narrow(of->requant)) {
            thimble_hold_lanes(of->requant, outputs[0], 4 * fours);
            thimble_hold_lanes(of->requant, outputs[1], 4 * fours);
        }
        parameters += fours * (bytes + THIMBLE_LANE_SCALING);
        channels &= 3;
        outputs[0] += 4 * fours;
        outputs[1] += 4 * fours;
    }
#endif
    put_any(of, parameters, channels, columns, added, outputs);
}

void thimble_convolve_offset_lanes_s8(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      void *scratch,
                                      int8_t *output)
{
    const int32_t taps = shape->kernel_h * shape->kernel_w * shape->depth, channels = shape->output_c;
    const int32_t quick = thimble_quick_lanes(parameters, taps, channels);
    const int32_t size = ADDED * (int32_t)sizeof(int32_t);
    const products of = {requant, parameters, taps, channels, quick, shape->weight_zero_point, output};
    thimble_walk_pairs(shape, input, (int8_t *)scratch + size, ((taps + 3) & ~3) + size, put_pair, &of);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices: with filters that the toolchain has repacked, and of two computed at run time. */
#ifndef THIMBLE_MATMUL_H
#define THIMBLE_MATMUL_H

#include "thimble_requant.h"

#include <stdint.h>

#define THIMBLE_MATMUL_BATCH_DIMS 3

/* Strides of one operand, in elements: `outer` along the output's rows (x) or columns (y), `inner` along the
 * dimension that is summed over, `batch` along each batch dimension (0: broadcast). */
typedef struct {
    int32_t outer, inner;
    int32_t batch[THIMBLE_MATMUL_BATCH_DIMS];
    int32_t zero_point;
} thimble_matmul_operand;

/* x is rows by depth, y depth by columns, and the output rows by columns, in each batch. `multiplier` and
 * `code`: see thimble_requant.h. */
typedef struct {
    int32_t batch[THIMBLE_MATMUL_BATCH_DIMS];
    int32_t rows, depth, columns;
    thimble_matmul_operand x, y;
    int32_t multiplier, code;
} thimble_matmul_shape;

/* Matrix product: output[batch, i, j] = sum over k of x[batch, i, k] * y[batch, k, j], row-major; zero points
 * are subtracted first.
 *
 * scratch: `depth` int16, rounded up to a multiple of four, word aligned. */
void thimble_batch_matmul_s8(const thimble_matmul_shape *shape,
                             const thimble_requant *requant,
                             const int8_t *x,
                             const int8_t *y,
                             void *scratch,
                             int8_t *output);

/* The same of int16, without zero points; sums are int64. `code` is TFLite's left shift, and 16 bits of the
 * multiplier are used. No scaled sum may exceed int32. */
void thimble_batch_matmul_s16(
    const thimble_matmul_shape *shape, const int16_t *x, const int16_t *y, void *scratch, int16_t *output);

/* Fully connected layer whose filters are computed at run time, or have a zero point: x is the input, y the
 * filters [columns][depth]. `bias` may be NULL. `multiplier`, `low` and `code` scale a sum and round it once,
 * as in thimble_fully_connected_s8. scratch: as for thimble_batch_matmul_s8. */
void thimble_fully_connected_computed_s8(const thimble_matmul_shape *shape,
                                         int32_t low,
                                         const thimble_requant *requant,
                                         const int8_t *input,
                                         const int8_t *filters,
                                         const int32_t *bias,
                                         void *scratch,
                                         int8_t *output);

/* Fully connected layer: `rows` inputs of `depth` bytes, `units` outputs for each. A sum is scaled and
 * rounded once, as LiteRT does since 2025. No scratch.
 *
 * parameters: for each four units (the last ones padded with zeros to four): four biases, which include what
 * the input's zero point adds; for each four taps (padded with zeros) four bytes of each unit in turn;
 * then the scaling of the four, if `common` is null.
 *
 * common: the scaling of all units, or null. A scaling is four multipliers, four low parts of
 * multipliers, and four int8 shift codes in one word. */
void thimble_fully_connected_s8(int32_t rows,
                                int32_t depth,
                                int32_t units,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                const int32_t *common,
                                int8_t *output);

/* The same of units that are joined two by two. parameters: for each four units, of each two the first's bias
 * less the products of its weights of neighbouring taps, and 256 times the second's bias plus the first's;
 * for each four taps and each two units, int16 of the first and third tap, then of the second and fourth,
 * each 256 times the second unit's weight plus that of the first; then the scaling of the four, if `common`
 * is null. The toolchain has proved that the second unit's sums, with bias, are below 2^23 in magnitude. */
void thimble_fully_connected_joined_s8(int32_t rows,
                                       int32_t depth,
                                       int32_t units,
                                       const thimble_requant *requant,
                                       const int8_t *input,
                                       const int32_t *parameters,
                                       const int32_t *common,
                                       int8_t *output);

/* The same for vectors of sixteen lanes: for each sixteen taps (padded with zeros), sixteen bytes of each
 * unit in turn. */
void thimble_fully_connected_lanes_s8(int32_t rows,
                                      int32_t depth,
                                      int32_t units,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      const int32_t *common,
                                      int8_t *output);

/* The same with filters of four bits: for each four taps (padded with zeros) a word of the first and the
 * third, then one of the second and the fourth. Each half of a word holds four bits of each unit, the first
 * unit's lowest, those of the first and the third plus 8. */
void thimble_fully_connected_s4(int32_t rows,
                                int32_t depth,
                                int32_t units,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                const int32_t *common,
                                int8_t *output);

/* The same for vectors of sixteen lanes: for each sixteen taps (padded with zeros), sixteen bytes of the
 * first and the second unit, then of the third and the fourth: above four bits of the first plus 8 those of
 * the second. */
void thimble_fully_connected_lanes_s4(int32_t rows,
                                      int32_t depth,
                                      int32_t units,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      const int32_t *common,
                                      int8_t *output);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* int8 products of matrices that are both computed at run time. */
#ifndef THIMBLE_MATMUL_H
#define THIMBLE_MATMUL_H

#include "thimble_dsp.h"

#define THIMBLE_MATMUL_BATCH_DIMS 3

/* One operand: elements between neighbours. `outer` is along the output's rows (left operand) or columns
 * (right operand), `inner` along the dimension that is summed over, `batch` along each batch dimension (0:
 * broadcast). */
typedef struct {
    int32_t outer, inner;
    int32_t batch[THIMBLE_MATMUL_BATCH_DIMS];
    int32_t zero_point;
} thimble_matmul_operand;

typedef struct {
    int32_t batch[THIMBLE_MATMUL_BATCH_DIMS];
    int32_t rows, depth, columns;
    thimble_matmul_operand x, y;
    int32_t multiplier, code;
} thimble_matmul_shape;

/* output[batch, i, j] = sum over k of x[batch, i, k] * y[batch, k, j], row-major.
 *
 * scratch: int16 for each of `depth` rounded up to four, word aligned.
 */
void thimble_batch_matmul_s8(const thimble_matmul_shape *shape,
                             const thimble_requant *requant,
                             const int8_t *x,
                             const int8_t *y,
                             void *scratch,
                             int8_t *output);

/* The same of int16, with sums of int64 and no zero points; `code` is TFLite's left shift. The factor keeps
 * 16 bits of the multiplier; no result may leave int32. */
void thimble_batch_matmul_s16(
    const thimble_matmul_shape *shape, const int16_t *x, const int16_t *y, void *scratch, int16_t *output);

#endif

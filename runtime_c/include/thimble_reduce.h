/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over axes of a dense input seen as [outer][first][middle][second][inner], of which `first` and
 * `second` are reduced; output [outer][middle][inner]. */
#ifndef THIMBLE_REDUCE_H
#define THIMBLE_REDUCE_H

#include "thimble_pool.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    THIMBLE_SUM,
    THIMBLE_MEAN,
    THIMBLE_MAXIMUM,
    THIMBLE_MINIMUM,
    THIMBLE_PRODUCT
} thimble_reduction;

/** What is computed, and the sizes. */
typedef struct {
    thimble_reduction reduction;
    int32_t outer;
    int32_t first;
    int32_t middle;
    int32_t second;
    int32_t inner;
} thimble_reduce_params;

/** Of float. NaN is passed over by extremes. */
void thimble_reduce_f32(const thimble_reduce_params *params, const float *input, float *output);

/** Of int32: sums and products wrap; a mean is rounded towards 0. */
void thimble_reduce_s32(const thimble_reduce_params *params, const int32_t *input, int32_t *output);

/** The same of int64. */
void thimble_reduce_s64(const thimble_reduce_params *params, const int64_t *input, int64_t *output);

/** A product of quantised values is scaled by multiplier * 2^(shift - 15) after each factor and once more at
 * its end (LiteRT `QuantizedReduceProd`). */
typedef struct {
    thimble_reduce_shape shape;
    int32_t input_offset; /**< zero points */
    int32_t output_offset;
    int32_t multiplier; /**< 15 bits */
    int32_t shift;      /**< left, -31 to 14 */
} thimble_reduce_prod_params;

/** Products of int8. */
void thimble_reduce_prod_s8(const thimble_reduce_prod_params *params, const int8_t *input, int8_t *output);

/** The same of int16. */
void thimble_reduce_prod_s16(const thimble_reduce_prod_params *params, const int16_t *input, int16_t *output);

/** One scaling of a product, halves up. */
static inline int32_t thimble_reduce_scaled(const thimble_reduce_prod_params *params, int64_t product)
{
    const int32_t right = 15 - params->shift;
    return (int32_t)((product * params->multiplier + ((int64_t)1 << (right - 1))) >> right);
}

#ifdef __cplusplus
}
#endif

#endif

/* Kernels that reduce: sums, means and extremes over axes. */
#ifndef THIMBLE_POOL_H
#define THIMBLE_POOL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A dense input seen as [outer][first][middle][second][inner]: `first` and `second` are reduced. */
typedef struct {
    int32_t outer;
    int32_t first;
    int32_t middle;
    int32_t second;
    int32_t inner;
} thimble_reduce_shape;

typedef struct {
    thimble_reduce_shape shape;
    int32_t input_sum;     /**< the input's zero point times first times second */
    int32_t output_offset; /**< the output's zero point */
    int32_t multiplier;    /**< output = requantise(sum - input_sum) + output_offset */
    int32_t shift;
} thimble_reduce_sum_params;

/**
 * Sum or mean over axes, requantised and saturated (TFLite QuantizedMeanOrSum).
 *
 * The output, [outer][middle][inner], may begin at or below the input.
 */
void thimble_reduce_sum_s8(const thimble_reduce_sum_params *params, const int8_t *input, int8_t *output);

/**
 * Largest element over axes (flip 0), or smallest (flip -1).
 *
 * The output, [outer][middle][inner], may begin at or below the input.
 */
void thimble_reduce_max_s8(const thimble_reduce_shape *shape,
                           int32_t flip,
                           const int8_t *input,
                           int8_t *output);

#ifdef __cplusplus
}
#endif

#endif

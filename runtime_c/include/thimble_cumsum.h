/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums along `count` of a tensor seen as [outer][count][inner]. The output may be the input. */
#ifndef THIMBLE_CUMSUM_H
#define THIMBLE_CUMSUM_H

#include <stdint.h>

/** `exclusive`: 1 if a sum leaves out its own element. `reverse`: 1 if sums run from the last element to the
 *  first. */
typedef struct {
    int32_t outer;
    int32_t count;
    int32_t inner;
    int32_t exclusive;
    int32_t reverse;
} thimble_cumsum_params;

/** Running sums of float, one rounding an addition. */
void thimble_cumsum_f32(const thimble_cumsum_params *params, const float *input, float *output);

/** Running sums of int32, which wrap. */
void thimble_cumsum_s32(const thimble_cumsum_params *params, const int32_t *input, int32_t *output);

/** The same of int64. */
void thimble_cumsum_s64(const thimble_cumsum_params *params, const int64_t *input, int64_t *output);

/** How sums of int8 are scaled: total * 2^19 * multiplier * 2^(shift - 31) + output_offset. */
typedef struct {
    int32_t zero_point;
    int32_t multiplier;
    int32_t shift;
    int32_t output_offset;
} thimble_fine_sum;

/** Running sums of int8, each less the zero point once more (tflite-micro's `CumSum`). */
void thimble_cumsum_s8(const thimble_cumsum_params *params,
                       const int8_t *input,
                       int8_t *output,
                       const thimble_fine_sum *fine);

/** One sum, scaled and saturated. */
int8_t thimble_fine_sum_s8(int32_t total, int32_t multiplier, int32_t shift, int32_t output_offset);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THIMBLE_SVDF_H
#define THIMBLE_SVDF_H

#include <stdint.h>

/** `rank` filters make a unit. Factors are multiplier * 2^(shift - 31). */
typedef struct {
    int32_t batches;
    int32_t depth;
    int32_t units;
    int32_t rank;
    int32_t memory;
    int32_t input_zero_point;
    int32_t state_zero_point;
    int32_t output_zero_point;
    int32_t into_multiplier;
    int32_t into_shift;
    int32_t out_multiplier;
    int32_t out_shift;
} thimble_svdf_params;

/** A layer over time with an int8 state of any zero point (TFLM `EvalIntegerSvdfReference<int8_t>`): features
 * [units * rank][depth], time [units * rank][memory], state [batches][units * rank][memory] moves by one.
 * `bias` may be NULL. No overlap. */
void thimble_svdf_s8(const thimble_svdf_params *params,
                     const int8_t *input,
                     const int8_t *features,
                     const int8_t *time,
                     const int32_t *bias,
                     int8_t *state,
                     int8_t *output);

#endif

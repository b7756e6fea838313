/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THIMBLE_SVDF_H
#define THIMBLE_SVDF_H

#include <stdint.h>

/** A unit of the output sums `rank` filters. `memory`: past values of a filter that the state keeps. Sums are
 *  scaled by multiplier * 2^(shift - 31), into the state and out of it. */
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

/** SVDF, a layer over time, with an int8 state (TFLM `EvalIntegerSvdfReference<int8_t>`). Input
 * [batches][depth], output [batches][units], features [units * rank][depth], time [units * rank][memory]. The
 * state [batches][units * rank][memory] is updated: values move down by one place and a new one follows.
 * `bias` may be NULL. Input, state and output may not overlap. */
void thimble_svdf_s8(const thimble_svdf_params *params,
                     const int8_t *input,
                     const int8_t *features,
                     const int8_t *time,
                     const int32_t *bias,
                     int8_t *state,
                     int8_t *output);

/** The same with an int16 state and int16 time filters, whose zero points are 0 (LiteRT `EvalIntegerSVDF`).
 * Sums wrap. */
void thimble_svdf_s16_s8(const thimble_svdf_params *params,
                         const int8_t *input,
                         const int8_t *features,
                         const int16_t *time,
                         const int32_t *bias,
                         int16_t *state,
                         int8_t *output);

#endif

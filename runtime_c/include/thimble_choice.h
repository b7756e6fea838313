/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, truth values (bytes 0 and 1) and what is chosen by them, on one run of `size` contiguous
 * elements. A step is 1 if the operand advances with the output, 0 if one element of it serves the whole run.
 */
#ifndef THIMBLE_CHOICE_H
#define THIMBLE_CHOICE_H

#include <stdint.h>

/** (x + offset) * 256 * multiplier * 2^(shift - 31) of both operands is compared. `relation`: the sum of 1
 * (holds below), 2 (equal), 4 (above). */
typedef struct {
    int32_t relation;
    int32_t offset_1;
    int32_t multiplier_1;
    int32_t shift_1;
    int32_t offset_2;
    int32_t multiplier_2;
    int32_t shift_2;
} thimble_compare_params;

/** 1 where the relation holds between two int8 operands, else 0 (TFLite `ComparisonWithScaling`). */
void thimble_compare_s8(const int8_t *input_1,
                        int32_t step_1,
                        const int8_t *input_2,
                        int32_t step_2,
                        uint8_t *output,
                        int32_t size,
                        const thimble_compare_params *params);

/** The same of plain values. `relation` as above; of what is not a number, only 5 holds. */
typedef struct {
    int32_t relation;
} thimble_relation_params;

void thimble_compare_f32(const float *input_1,
                         int32_t step_1,
                         const float *input_2,
                         int32_t step_2,
                         uint8_t *output,
                         int32_t size,
                         const thimble_relation_params *params);
void thimble_compare_s16(const int16_t *input_1,
                         int32_t step_1,
                         const int16_t *input_2,
                         int32_t step_2,
                         uint8_t *output,
                         int32_t size,
                         const thimble_relation_params *params);
void thimble_compare_s32(const int32_t *input_1,
                         int32_t step_1,
                         const int32_t *input_2,
                         int32_t step_2,
                         uint8_t *output,
                         int32_t size,
                         const thimble_relation_params *params);
void thimble_compare_s64(const int64_t *input_1,
                         int32_t step_1,
                         const int64_t *input_2,
                         int32_t step_2,
                         uint8_t *output,
                         int32_t size,
                         const thimble_relation_params *params);
void thimble_compare_u8(const uint8_t *input_1,
                        int32_t step_1,
                        const uint8_t *input_2,
                        int32_t step_2,
                        uint8_t *output,
                        int32_t size,
                        const thimble_relation_params *params);

/** Bit 2 * a + b of `table` is the result for a and b. */
typedef struct {
    uint32_t table;
} thimble_logical_params;

/** A logical function of two truth values. The output may be an operand whose step is 1. */
void thimble_logical(const uint8_t *input_1,
                     int32_t step_1,
                     const uint8_t *input_2,
                     int32_t step_2,
                     uint8_t *output,
                     int32_t size,
                     const thimble_logical_params *params);

/** `size` runs of `run_bytes` contiguous bytes. Steps count runs. */
typedef struct {
    int32_t size;
    int32_t run_bytes;
    int32_t step_condition;
    int32_t step_yes;
    int32_t step_no;
} thimble_select_params;

/** Copies each run from `yes` if its condition holds, else from `no`. The output may be an operand whose step
 * is 1. */
void thimble_select(const thimble_select_params *params,
                    const uint8_t *condition,
                    const void *yes,
                    const void *no,
                    void *output);

/** The `k` largest elements of each of `rows` rows of `columns`, in descending order, or the smallest in
 * ascending order. */
typedef struct {
    int32_t rows;
    int32_t columns;
    int32_t k;
    int32_t smallest;
    int32_t index_bytes; /**< 4: the indices are int32; 8: int64 */
} thimble_top_k_params;

/** The elements and their indices. Of equal elements the one with the lower index comes first; there is none
 * that is not a number. */
void thimble_top_k_f32(const thimble_top_k_params *params, const float *input, float *values, void *indices);
void thimble_top_k_s32(const thimble_top_k_params *params,
                       const int32_t *input,
                       int32_t *values,
                       void *indices);
void thimble_top_k_s16(const thimble_top_k_params *params,
                       const int16_t *input,
                       int16_t *values,
                       void *indices);
void thimble_top_k_s64(const thimble_top_k_params *params,
                       const int64_t *input,
                       int64_t *values,
                       void *indices);
void thimble_top_k_s8(const thimble_top_k_params *params, const int8_t *input, int8_t *values, void *indices);

#endif

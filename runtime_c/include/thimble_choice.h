/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons, truth values (bytes 0 and 1) and what is chosen by them. A step is 1, or 0 where the operand
 * stands still. */
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

/** TFLite `ComparisonWithScaling`. */
void thimble_compare_s8(const int8_t *input_1,
                        int32_t step_1,
                        const int8_t *input_2,
                        int32_t step_2,
                        uint8_t *output,
                        int32_t size,
                        const thimble_compare_params *params);

/** Bit 2 * a + b of `table` is what becomes of a and b. */
typedef struct {
    uint32_t table;
} thimble_logical_params;

/** In place over an operand that moves. */
void thimble_logical(const uint8_t *input_1,
                     int32_t step_1,
                     const uint8_t *input_2,
                     int32_t step_2,
                     uint8_t *output,
                     int32_t size,
                     const thimble_logical_params *params);

/** Runs of `run_bytes` from `yes` where the condition holds, else from `no`. Steps are in runs; in place over
 * an operand that moves. */
typedef struct {
    int32_t size;
    int32_t run_bytes;
    int32_t step_condition;
    int32_t step_yes;
    int32_t step_no;
} thimble_select_params;

void thimble_select(const thimble_select_params *params,
                    const uint8_t *condition,
                    const void *yes,
                    const void *no,
                    void *output);

/** The `k` largest of each of `rows` rows, largest first, of equals the first first; and where they stood. */
void thimble_top_k_s8(
    const int8_t *input, int32_t rows, int32_t columns, int32_t k, int8_t *values, int32_t *indices);

#endif

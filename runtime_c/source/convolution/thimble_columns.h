/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a convolution as columns of int16, two of them interleaved, and their products with filters. */
#ifndef THIMBLE_COLUMNS_H
#define THIMBLE_COLUMNS_H

#include "thimble_requant.h"

#include <stdint.h>

/* Sign-extends `words` * 4 bytes to int16 for one of two interleaved columns: bytes 0 and 2, then 1 and 3,
 * then two words left to the other column. */
void thimble_expand_column_s8(const int8_t *input, int32_t words, uint32_t *column);

/* int8 taps whose sum is an int16. */
#define THIMBLE_SUMMED_TAPS 252

/* Appends to one of two interleaved columns of `taps` taps, for each 4 * THIMBLE_SUMMED_TAPS (or part), four
 * more: minus the sums of the taps. Clears what fills the last word of taps. */
void thimble_sum_column_s8(int32_t taps, uint32_t *column);

/* Two interleaved columns (thimble_expand_column_s8) of 4 * words taps times `channels` filters; returns the
 * parameters after these. output_0 and output_1 may be equal; then column 0 counts. */
const int32_t *thimble_mat_mult_columns_s8(const int32_t *parameters,
                                           const uint32_t *columns,
                                           int32_t words,
                                           int32_t channels,
                                           const thimble_requant *requant,
                                           int8_t *output_0,
                                           int8_t *output_1);

/* Sums of columns 0 and 1 with channels 0 and 1. */
typedef struct {
    int32_t s00, s01, s10, s11;
} thimble_block_sums;

/* Two biases and 4 * words taps of two channels, with two interleaved columns; returns the parameters after
 * these. */
const int32_t *thimble_sum_block_s8(const int32_t *parameters,
                                    const uint32_t *columns,
                                    int32_t words,
                                    thimble_block_sums *sums);

/* The same of column 0 alone, which an odd last pixel is. */
const int32_t *thimble_mat_mult_column_s8(const int32_t *parameters,
                                          const uint32_t *columns,
                                          int32_t words,
                                          int32_t channels,
                                          const thimble_requant *requant,
                                          int8_t *output);

/* Two interleaved columns (thimble_expand_column_s8) of 4 * words taps times `channels` filters, added to
 * sums_0 and sums_1 (null: to zero). output_0 and output_1 may be equal; then column 0 counts. */
void thimble_add_columns_s8(const int32_t *parameters,
                            const uint32_t *columns,
                            int32_t words,
                            int32_t channels,
                            const int32_t *sums_0,
                            const int32_t *sums_1,
                            int32_t *output_0,
                            int32_t *output_1);

#endif

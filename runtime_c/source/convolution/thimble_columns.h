/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a convolution as columns of int16, some of them interleaved, and their products with filters. */
#ifndef THIMBLE_COLUMNS_H
#define THIMBLE_COLUMNS_H

#include "thimble_requant.h"

#include <stdint.h>

/* Sign-extends `words` * 4 bytes to int16 for one of several `interleaved` columns: bytes 0 and 2, then 1 and
 * 3, then two words left to each of the others. */
void thimble_expand_column_s8(const int8_t *input, int32_t words, int32_t interleaved, uint32_t *column);

/* The same for all of `count` interleaved columns, of runs `step` bytes apart. */
void thimble_expand_windows_s8(
    const int8_t *input, int32_t step, int32_t words, int32_t count, uint32_t *columns);

/* int8 taps whose sum is an int16. */
#define THIMBLE_SUMMED_TAPS 252

/* Appends to one of several interleaved columns of `taps` taps, for each 4 * THIMBLE_SUMMED_TAPS (or part),
 * four more: minus the sums of the taps. Clears what fills the last word of taps. */
void thimble_sum_column_s8(int32_t taps, int32_t interleaved, uint32_t *column);

/* Expands the windows of the next pixels, `at_once` of them or all that are left, to as many interleaved
 * columns, the last one of all, if it is alone, to a column that is not interleaved. Says where their outputs
 * go, and returns how many there are. */
typedef int32_t (*thimble_next_windows)(void *walk, uint32_t *columns, int8_t **outputs);

/* All windows of a `walk`, of 4 * words taps, times `channels` filters. `columns`: room for `at_once` of
 * them, two to four. */
void thimble_mat_mult_windows_s8(const int32_t *parameters,
                                 int32_t words,
                                 int32_t channels,
                                 const thimble_requant *requant,
                                 uint32_t *columns,
                                 int32_t at_once,
                                 thimble_next_windows next,
                                 void *walk);

/* One column, which is not interleaved, of 4 * words taps times `channels` filters. */
void thimble_mat_mult_column_s8(const int32_t *parameters,
                                const uint32_t *column,
                                int32_t words,
                                int32_t channels,
                                const thimble_requant *requant,
                                int8_t *output);

/* Sums, with biases, of two channels and one, two or four (`count`) interleaved columns of 4 * words taps:
 * for each column two. Returns the parameters after these. */
const int32_t *thimble_sum_block_s8(
    const int32_t *parameters, const uint32_t *columns, int32_t words, int32_t count, int32_t *sums);

/* Two interleaved columns of 4 * words taps times `channels` filters, added to sums_0 and sums_1 (null: to
 * zero). output_0 and output_1 may be equal; then column 0 counts. */
void thimble_add_columns_s8(const int32_t *parameters,
                            const uint32_t *columns,
                            int32_t words,
                            int32_t channels,
                            const int32_t *sums_0,
                            const int32_t *sums_1,
                            int32_t *output_0,
                            int32_t *output_1);

#endif

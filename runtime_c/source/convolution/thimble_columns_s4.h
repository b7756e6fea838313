/* SPDX-License-Identifier: Apache-2.0 */
/* Products of windows, as columns of int16, with filters of four bits.
 *
 * A block of parameters is of four channels: the biases of the first and the third; two words for each four
 * taps (thimble_fours.h), of the first and the third, then of the second and the fourth; the biases of the
 * second and the fourth; four multipliers; four rounding terms; four int8 shift codes; how the block ends
 * (THIMBLE_ENDS_...). */
#ifndef THIMBLE_COLUMNS_S4_H
#define THIMBLE_COLUMNS_S4_H

#include "thimble_columns.h"

/* Words of a block behind its filters and their biases. */
#define THIMBLE_FOUR_SCALING 10

/* Four channels with fast forms that need no clamp: of thimble_requantize_fast, or of THIMBLE_SHIFT_ONCE. Any
 * others. Less than four channels, all of THIMBLE_SHIFT_ONCE. */
#define THIMBLE_ENDS_TWICE 1
#define THIMBLE_ENDS_ONCE 2
#define THIMBLE_ENDS_ANYHOW 0
#define THIMBLE_ENDS_PART_ONCE (-1)

/* As thimble_mat_mult_windows_s8; at_once is two or four. */
void thimble_mat_mult_windows_s4(const int32_t *parameters,
                                 int32_t words,
                                 int32_t channels,
                                 const thimble_requant *requant,
                                 uint32_t *columns,
                                 int32_t at_once,
                                 thimble_next_windows next,
                                 void *walk);

/* One column, which is not interleaved, of 4 * words taps times `channels` filters. */
void thimble_mat_mult_column_s4(const int32_t *parameters,
                                const uint32_t *column,
                                int32_t words,
                                int32_t channels,
                                const thimble_requant *requant,
                                int8_t *output);

/* For each of one, two or four interleaved columns of 4 * words taps: -8 times their sum. */
void thimble_column_offsets_s4(const uint32_t *columns, int32_t words, int32_t interleaved, int32_t *offsets);

/* Sums, with biases, of a block and one or two (`count`) of several interleaved columns: for each of them
 * four. Returns the block's scaling. */
const int32_t *thimble_sum_block_s4(const int32_t *parameters,
                                    const uint32_t *columns,
                                    int32_t words,
                                    int32_t interleaved,
                                    int32_t count,
                                    const int32_t *offsets,
                                    int32_t *sums);

/* Outputs of `count` channels of a block by its scaling. */
void thimble_put_block_s4(const int32_t *sums,
                          const int32_t *scaling,
                          int32_t count,
                          const thimble_requant *requant,
                          int8_t *output);

#endif

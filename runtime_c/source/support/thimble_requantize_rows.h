/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of int32 sums to int8, each with a scaling of its own. */
#ifndef THIMBLE_REQUANTIZE_ROWS_H
#define THIMBLE_REQUANTIZE_ROWS_H

#include <stdint.h>

/* Where the scaling of the next row is: its bias, multiplier and shift code, which is >= 0. `twice_offset`:
 * twice the output offset, and 1. */
typedef struct {
    const int32_t *bias, *multiplier;
    const int8_t *code;
    int32_t twice_offset;
} thimble_row_scaling;

/* `rows` rows (at least one) of `count` sums (at least one) one after the other, as thimble_requantize_fast
 * scales them; outputs `step` bytes apart. Leaves `scaling` behind the last row's. */
void thimble_requantize_rows_s8(
    const int32_t *sums, thimble_row_scaling *scaling, int32_t rows, int32_t count, int8_t *to, int32_t step);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of int8 elements over a rectangle. */
#ifndef THIMBLE_SUM_WINDOW_H
#define THIMBLE_SUM_WINDOW_H

#include <stddef.h>
#include <stdint.h>

/** A rectangle of elements; strides in bytes. */
typedef struct {
    int32_t rows;
    int32_t columns;
    ptrdiff_t row_stride;
    ptrdiff_t column_stride;
} thimble_window;

/** Sums over a window of `channels` neighbouring channels, at most 4, that begin at `corner`. */
void thimble_sum_window_s8(const thimble_window *window,
                           const int8_t *corner,
                           int32_t channels,
                           int32_t sums[4]);

#endif

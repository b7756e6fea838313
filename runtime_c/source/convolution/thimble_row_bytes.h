/* SPDX-License-Identifier: Apache-2.0 */
/* The pixels under one row of a convolution's window, as bytes. */
#ifndef THIMBLE_ROW_BYTES_H
#define THIMBLE_ROW_BYTES_H

#include "thimble_bytes.h"
#include "thimble_conv.h"

/* Taps of one kernel row that fall left of the image, into it and right of it. `contiguous`: neighbouring
 * taps read neighbouring bytes. */
typedef struct {
    int32_t before, inside, after;
    int32_t contiguous;
} thimble_row_span;

static inline thimble_row_span thimble_span_at(const thimble_conv_shape *shape, int32_t x)
{
    const int32_t step = shape->dilation_w, last = x + (shape->kernel_w - 1) * step;
    thimble_row_span span = {0, 0, 0, step == 1 && shape->depth == shape->input_c};
    if (x < 0) {
        span.before = step == 1 ? -x : (step - 1 - x) / step;
    }
    if (last >= shape->input_w) {
        const int32_t over = last - shape->input_w + 1;
        span.after = step == 1 ? over : (over + step - 1) / step;
    }
    span.before = span.before < shape->kernel_w ? span.before : shape->kernel_w;
    span.after = span.after < shape->kernel_w - span.before ? span.after : shape->kernel_w - span.before;
    span.inside = shape->kernel_w - span.before - span.after;
    return span;
}

/* One kernel row as bytes; `line` is null for a row outside the image, else its first pixel. */
static inline int8_t *thimble_put_row_bytes(const thimble_conv_shape *shape,
                                            const thimble_row_span *span,
                                            const int8_t *line,
                                            int32_t x,
                                            uint32_t zero_points,
                                            int8_t *to)
{
    const int32_t depth = shape->depth, step = shape->dilation_w;
    if (!line) {
        return thimble_fill_bytes(to, shape->kernel_w * depth, zero_points);
    }
    to = thimble_fill_bytes(to, span->before * depth, zero_points);
    const int8_t *from = line + (x + span->before * step) * shape->input_c;
    if (span->contiguous != 0) {
        to = thimble_copy_bytes(to, from, span->inside * depth);
    } else {
        for (int32_t tap = 0; tap < span->inside; tap++, from += step * shape->input_c) {
            to = thimble_copy_bytes(to, from, depth);
        }
    }
    return thimble_fill_bytes(to, span->after * depth, zero_points);
}

#endif

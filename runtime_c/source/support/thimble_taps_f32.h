/* SPDX-License-Identifier: Apache-2.0 */
/* Taps of a window that lie inside an image. */
#ifndef THIMBLE_TAPS_F32_H
#define THIMBLE_TAPS_F32_H

#include <stdint.h>

/** Taps [*begin, *end) of a window at `origin` that lie inside `size`. */
static inline void
thimble_taps(int32_t origin, int32_t size, int32_t kernel, int32_t dilation, int32_t *begin, int32_t *end)
{
    const int32_t first = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
    const int32_t last = size > origin ? (size - origin + dilation - 1) / dilation : 0;
    *begin = first < kernel ? first : kernel;
    *end = last < kernel ? last : kernel;
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of images, which may lie apart. */
#ifndef THIMBLE_LINE_H
#define THIMBLE_LINE_H

#include <stdint.h>

/* Bytes from one line of an image to the next. `with_gaps`: that where the lines lie apart, else 0. */
static inline int32_t thimble_line(int32_t with_gaps, int32_t columns, int32_t channels)
{
    return with_gaps ? with_gaps : columns * channels;
}

#endif

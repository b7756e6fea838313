/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THIMBLE_CAST_H
#define THIMBLE_CAST_H

#include <stdint.h>

typedef enum {
    THIMBLE_S8,
    THIMBLE_U8,
    THIMBLE_BOOL,
    THIMBLE_S16,
    THIMBLE_S32,
    THIMBLE_U32,
    THIMBLE_S64,
    THIMBLE_F32
} thimble_element;

/** `count` elements of one type to another. Narrower integers keep the low bits; floats lose their fraction
 * and are held within the integers; NaN becomes the least one. What is not 0 is true. The output may be the
 * input where it is no wider. */
void thimble_cast(const void *input, thimble_element from, int32_t count, void *output, thimble_element to);

#endif

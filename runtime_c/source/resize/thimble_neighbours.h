/* SPDX-License-Identifier: Apache-2.0 */
/* Places between pixels, as TFLite's `ComputeInterpolationValues` has them in float. */
#ifndef THIMBLE_NEIGHBOURS_H
#define THIMBLE_NEIGHBOURS_H

#include "thimble_exact_float.h"
#include "thimble_float.h"

/* Two neighbours of a place on a line, and what each weighs. */
typedef struct {
    int32_t lower, upper;
    float near_lower, near_upper;
} thimble_neighbours;

THIMBLE_EXACT_FLOAT static inline thimble_neighbours
thimble_around(int32_t position, const thimble_resize_float_line *line, int32_t half_pixel, int32_t size)
{
    thimble_neighbours found;
    const int32_t index = position + line->begin, last = size + line->first - 1;
    const float scale = line->scale;
    const float place = half_pixel ? ((float)index + 0.5f) * scale - 0.5f : (float)index * scale;
    int32_t floor = (int32_t)place;
    floor -= (float)floor > place;
    const int32_t ceiling = floor + ((float)floor < place);
    found.lower = floor > 0 ? floor : 0;
    found.upper = ceiling < last ? ceiling : last;
    found.near_upper = place - (float)found.lower;
    found.near_lower = 1.0f - found.near_upper;
    found.lower -= line->first;
    found.upper -= line->first;
    return found;
}

#endif

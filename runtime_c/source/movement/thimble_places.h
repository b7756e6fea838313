/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THIMBLE_PLACES_H
#define THIMBLE_PLACES_H

#include "thimble_data.h"

#include <stddef.h>

/** The index at `place` of int32 or int64 ones. */
static inline int64_t thimble_index_at(const void *indices, int32_t index_bytes, int32_t place)
{
    return index_bytes == 8 ? ((const int64_t *)indices)[place] : ((const int32_t *)indices)[place];
}

/** Which run a row of coordinates names; -1 if there is none. */
static inline int32_t
thimble_place_of_row(const thimble_rows_params *params, const void *indices, int32_t row)
{
    int32_t place = 0;

    for (int32_t axis = 0; axis < params->depth; axis++) {
        const int64_t index = thimble_index_at(indices, params->index_bytes, row * params->depth + axis);
        if (index < 0 || index >= params->sizes[axis]) {
            return -1;
        }
        place = place * params->sizes[axis] + (int32_t)index;
    }
    return place;
}

#endif

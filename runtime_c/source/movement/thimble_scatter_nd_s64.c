/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_places.h"

int32_t thimble_scatter_nd_s64(const thimble_rows_params *params,
                               int32_t size,
                               const void *indices,
                               const int64_t *updates,
                               int64_t *target)
{
    const int32_t run = params->run_bytes / (int32_t)sizeof(int64_t);

    for (int32_t i = 0; i < size; i++) {
        target[i] = 0;
    }
    for (int32_t row = 0; row < params->rows; row++) {
        const int32_t place = thimble_place_of_row(params, indices, row);
        if (place < 0) {
            return -1;
        }
        const int64_t *from = &updates[row * run];
        int64_t *to = &target[place * run];
        for (int32_t i = 0; i < run; i++) {
            to[i] = (int64_t)((uint64_t)to[i] + (uint64_t)from[i]);
        }
    }
    return 0;
}

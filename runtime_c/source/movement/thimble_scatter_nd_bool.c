/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_places.h"

int32_t thimble_scatter_nd_bool(const thimble_rows_params *params,
                                int32_t size,
                                const void *indices,
                                const uint8_t *updates,
                                uint8_t *target)
{
    for (int32_t i = 0; i < size; i++) {
        target[i] = 0;
    }
    for (int32_t row = 0; row < params->rows; row++) {
        const int32_t place = thimble_place_of_row(params, indices, row);
        if (place < 0) {
            return -1;
        }
        const uint8_t *from = updates + (ptrdiff_t)row * params->run_bytes;
        uint8_t *to = target + (ptrdiff_t)place * params->run_bytes;
        for (int32_t i = 0; i < params->run_bytes; i++) {
            if (from[i] != 0u) {
                to[i] = 1;
            }
        }
    }
    return 0;
}

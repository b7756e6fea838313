/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_places.h"

int32_t thimble_scatter_nd_s8(const thimble_rows_params *params,
                              int32_t size,
                              int32_t zero,
                              const void *indices,
                              const int8_t *updates,
                              int8_t *target)
{
    for (int32_t i = 0; i < size; i++) {
        target[i] = (int8_t)zero;
    }
    for (int32_t row = 0; row < params->rows; row++) {
        const int32_t place = thimble_place_of_row(params, indices, row);
        if (place < 0) {
            return -1;
        }
        const int8_t *from = updates + (ptrdiff_t)row * params->run_bytes;
        int8_t *to = target + (ptrdiff_t)place * params->run_bytes;
        for (int32_t i = 0; i < params->run_bytes; i++) {
            to[i] = (int8_t)(uint8_t)(uint32_t)((int32_t)to[i] + (int32_t)from[i] - zero);
        }
    }
    return 0;
}

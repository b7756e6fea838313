/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_places.h"
#include "thimble_run.h"

int32_t
thimble_gather_nd(const thimble_rows_params *params, const void *data, const void *indices, void *target)
{
    const int8_t *source = (const int8_t *)data;
    int8_t *to = (int8_t *)target;

    for (int32_t row = 0; row < params->rows; row++) {
        const int32_t place = thimble_place_of_row(params, indices, row);
        if (place < 0) {
            return -1;
        }
        thimble_copy_run(to, source + (ptrdiff_t)place * params->run_bytes, params->run_bytes);
        to += params->run_bytes;
    }
    return 0;
}

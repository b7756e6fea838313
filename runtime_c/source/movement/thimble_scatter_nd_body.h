/* SPDX-License-Identifier: Apache-2.0 */
/* SCATTER_ND of ELEMENT: updates that meet in one place make an ADDED. */
#include "thimble_data.h"
#include "thimble_places.h"

int32_t SCATTER_ND(const thimble_rows_params *params,
                   int32_t size,
                   const void *indices,
                   const ELEMENT *updates,
                   ELEMENT *target)
{
    const int32_t run = params->run_bytes / (int32_t)sizeof(ELEMENT);

    for (int32_t i = 0; i < size; i++) {
        target[i] = 0;
    }
    for (int32_t row = 0; row < params->rows; row++) {
        const int32_t place = thimble_place_of_row(params, indices, row);
        if (place < 0) {
            return -1;
        }
        const ELEMENT *from = updates + (ptrdiff_t)row * run;
        ELEMENT *to = target + (ptrdiff_t)place * run;
        for (int32_t i = 0; i < run; i++) {
            to[i] = ADDED(to[i], from[i]);
        }
    }
    return 0;
}

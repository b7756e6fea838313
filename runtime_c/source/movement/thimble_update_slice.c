/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_places.h"
#include "thimble_run.h"

/* The update is walked run by run along its last axis; `turn` counts the runs before. */
void thimble_update_slice(const thimble_update_slice_params *params,
                          const void *data,
                          const void *update,
                          const void *starts,
                          void *target)
{
    const int32_t last = params->axes - 1;
    const int32_t run_bytes = params->update_sizes[last] * params->element_bytes;
    const int8_t *from = (const int8_t *)update;
    int8_t *to = (int8_t *)target;
    int32_t first[8] = {0};
    int32_t runs = 1;

    for (int32_t axis = 0; axis <= last; axis++) {
        const int64_t start = thimble_index_at(starts, params->index_bytes, axis);
        const int32_t most = params->sizes[axis] - params->update_sizes[axis];
        first[axis] = start < 0 ? 0 : start > most ? most : (int32_t)start;
        runs *= axis < last ? params->update_sizes[axis] : 1;
    }
    if (to != (const int8_t *)data) {
        int32_t bytes = params->element_bytes;
        for (int32_t axis = 0; axis <= last; axis++) {
            bytes *= params->sizes[axis];
        }
        thimble_copy_run(to, (const int8_t *)data, bytes);
    }
    for (int32_t turn = 0; turn < runs; turn++) {
        int32_t rest = turn;
        int32_t place = first[last];
        int32_t stride = params->sizes[last];
        for (int32_t axis = last - 1; axis >= 0; axis--) {
            place += (first[axis] + rest % params->update_sizes[axis]) * stride;
            rest /= params->update_sizes[axis];
            stride *= params->sizes[axis];
        }
        thimble_copy_run(to + (ptrdiff_t)place * params->element_bytes, from, run_bytes);
        from += run_bytes;
    }
}

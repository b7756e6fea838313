/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_data.h"
#include "thimble_run.h"

#include <stddef.h>

int32_t
thimble_gather(const thimble_gather_params *params, const void *data, const void *indices, void *target)
{
    const int8_t *source = (const int8_t *)data;
    const int32_t *narrow = (const int32_t *)indices;
    const int64_t *wide = (const int64_t *)indices;
    int8_t *to = (int8_t *)target;
    const ptrdiff_t run = params->run_bytes;

    for (int32_t batch = 0; batch < params->batches; batch++) {
        for (int32_t outer = 0; outer < params->outer; outer++) {
            for (int32_t i = 0; i < params->picks; i++) {
                const int32_t place = batch * params->picks + i;
                const int64_t index = params->index_bytes == 8 ? wide[place] : narrow[place];
                if (index < 0 || index >= params->count) {
                    return -1;
                }
                thimble_copy_run(to, source + run * (ptrdiff_t)index, params->run_bytes);
                to += run;
            }
            source += run * params->count;
        }
    }
    return 0;
}

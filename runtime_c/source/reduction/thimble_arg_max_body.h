/* SPDX-License-Identifier: Apache-2.0 */
/* ARG_MAX of ELEMENT: the first place of the largest value, or with `flip` of the smallest. */
#include "thimble_data.h"

#include <stddef.h>

void ARG_MAX(const thimble_arg_max_params *params, const ELEMENT *source, void *target)
{
    int32_t *narrow = (int32_t *)target;
    int64_t *wide = (int64_t *)target;
    const ptrdiff_t inner = params->inner;

    for (int32_t outer = 0; outer < params->outer; outer++) {
        for (int32_t column = 0; column < params->inner; column++) {
            const ELEMENT *element = source + column;
            ELEMENT best = *element;
            int32_t index = 0;
            for (int32_t i = 1; i < params->count; i++) {
                element += inner;
                if (params->flip != 0 ? *element < best : *element > best) {
                    best = *element;
                    index = i;
                }
            }
            if (params->index_bytes == 8) {
                *wide++ = index;
            } else {
                *narrow++ = index;
            }
        }
        source += inner * params->count;
    }
}

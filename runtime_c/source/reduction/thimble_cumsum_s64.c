/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_cumsum.h"

#include <stddef.h>

void thimble_cumsum_s64(const thimble_cumsum_params *params, const int64_t *input, int64_t *output)
{
    const ptrdiff_t step = params->reverse != 0 ? -params->inner : params->inner;
    const ptrdiff_t first = params->reverse != 0 ? (ptrdiff_t)params->inner * (params->count - 1) : 0;
    const ptrdiff_t plane = (ptrdiff_t)params->inner * params->count;

    for (int32_t outer = 0; outer < params->outer; outer++) {
        for (int32_t inner = 0; inner < params->inner; inner++) {
            ptrdiff_t place = outer * plane + first + inner;
            int64_t sum = 0;
            for (int32_t i = 0; i < params->count; i++, place += step) {
                const int64_t own = input[place];
                const int64_t next = (int64_t)((uint64_t)sum + (uint64_t)own);
                output[place] = params->exclusive != 0 ? sum : next;
                sum = next;
            }
        }
    }
}

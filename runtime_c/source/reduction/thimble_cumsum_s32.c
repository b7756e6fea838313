/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_cumsum.h"

#include <stddef.h>

void thimble_cumsum_s32(const thimble_cumsum_params *params, const int32_t *input, int32_t *output)
{
    const ptrdiff_t step = params->reverse != 0 ? -params->inner : params->inner;
    const ptrdiff_t first = params->reverse != 0 ? (ptrdiff_t)params->inner * (params->count - 1) : 0;
    const ptrdiff_t plane = (ptrdiff_t)params->inner * params->count;

    for (int32_t outer = 0; outer < params->outer; outer++) {
        for (int32_t inner = 0; inner < params->inner; inner++) {
            ptrdiff_t place = outer * plane + first + inner;
            int32_t sum = 0;
            for (int32_t i = 0; i < params->count; i++, place += step) {
                const int32_t own = input[place];
                const int32_t next = (int32_t)((uint32_t)sum + (uint32_t)own);
                output[place] = params->exclusive != 0 ? sum : next;
                sum = next;
            }
        }
    }
}

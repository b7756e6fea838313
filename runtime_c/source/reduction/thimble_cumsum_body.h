/* SPDX-License-Identifier: Apache-2.0 */
/* CUMSUM of ELEMENT: along an axis, each sum is the ADDED of those before it. */
#include "thimble_cumsum.h"

#include <stddef.h>

void CUMSUM(const thimble_cumsum_params *params, const ELEMENT *input, ELEMENT *output)
{
    const ptrdiff_t step = params->reverse != 0 ? -params->inner : params->inner;
    const ptrdiff_t first = params->reverse != 0 ? (ptrdiff_t)params->inner * (params->count - 1) : 0;
    const ptrdiff_t plane = (ptrdiff_t)params->inner * params->count;

    for (int32_t outer = 0; outer < params->outer; outer++) {
        for (int32_t inner = 0; inner < params->inner; inner++) {
            ptrdiff_t place = outer * plane + first + inner;
            ELEMENT sum = 0;
            for (int32_t i = 0; i < params->count; i++, place += step) {
                const ELEMENT next = ADDED(sum, input[place]);
                output[place] = params->exclusive != 0 ? sum : next;
                sum = next;
            }
        }
    }
}

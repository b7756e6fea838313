/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_cumsum.h"

#include <stddef.h>

void thimble_cumsum_s8(const thimble_cumsum_params *params,
                       const int8_t *input,
                       int8_t *output,
                       const thimble_fine_sum *fine)
{
    const thimble_fine_sum f = *fine;
    const ptrdiff_t step = params->reverse != 0 ? -params->inner : params->inner;
    const ptrdiff_t first = params->reverse != 0 ? (ptrdiff_t)params->inner * (params->count - 1) : 0;
    const ptrdiff_t plane = (ptrdiff_t)params->inner * params->count;

    for (int32_t outer = 0; outer < params->outer; outer++) {
        for (int32_t inner = 0; inner < params->inner; inner++) {
            ptrdiff_t place = outer * plane + first + inner;
            int32_t sum = -f.zero_point;
            for (int32_t i = 0; i < params->count; i++, place += step) {
                const int32_t next = sum + input[place] - f.zero_point;
                const int32_t taken = params->exclusive != 0 ? sum : next;
                output[place] = thimble_fine_sum_s8(taken, f.multiplier, f.shift, f.output_offset);
                sum = next;
            }
        }
    }
}

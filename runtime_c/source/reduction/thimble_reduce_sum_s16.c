/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_pool.h"
#include "thimble_saturate.h"

#include <stddef.h>

void thimble_reduce_sum_s16(const thimble_reduce_shape *shape,
                            int32_t multiplier,
                            int32_t shift,
                            const int16_t *input,
                            int16_t *output)
{
    const ptrdiff_t inner = shape->inner;
    const ptrdiff_t row = inner * shape->second;
    const ptrdiff_t plane = row * shape->middle;

    for (int32_t outer = 0; outer < shape->outer; outer++, input += plane * shape->first) {
        for (int32_t middle = 0; middle < shape->middle; middle++) {
            for (int32_t channel = 0; channel < shape->inner; channel++) {
                const int16_t *corner = input + middle * row + channel;
                int32_t sum = 0;
                for (int32_t first = 0; first < shape->first; first++, corner += plane) {
                    const int16_t *element = corner;
                    for (int32_t count = shape->second; count > 0; count--, element += inner) {
                        sum = thimble_moved(sum, *element);
                    }
                }
                const int32_t scaled = thimble_scaled(sum, multiplier, shift);
                *output++ = (int16_t)thimble_clamp_s16(scaled, INT16_MIN, INT16_MAX);
            }
        }
    }
}

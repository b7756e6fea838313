/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dsp.h"
#include "thimble_sum_window.h"
#include "thimble_sums.h"

void thimble_partial_sum_s8(const thimble_reduce_shape *shape,
                            const int8_t *input,
                            const int32_t *sums,
                            int32_t *output)
{
    const ptrdiff_t row = (ptrdiff_t)shape->inner * shape->second;
    const ptrdiff_t plane = row * shape->middle;
    const thimble_window window = {
        .rows = shape->first,
        .columns = shape->second,
        .row_stride = plane,
        .column_stride = shape->inner,
    };

    for (int32_t outer = 0; outer < shape->outer; outer++, input += plane * shape->first) {
        for (int32_t middle = 0; middle < shape->middle; middle++) {
            const int8_t *corner = input + middle * row;
            for (int32_t channel = 0; channel < shape->inner; channel += 4) {
                const int32_t together = shape->inner - channel < 4 ? shape->inner - channel : 4;
                int32_t window_sums[4];
                thimble_sum_window_s8(&window, corner + channel, together, window_sums);
                for (int32_t i = 0; i < together; i++) {
                    *output++ = thimble_add(window_sums[i], sums ? *sums++ : 0);
                }
            }
        }
    }
}

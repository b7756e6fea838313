/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE_PROD of ELEMENT over two axes: the product, scaled after each factor. */
#include "thimble_multiplier.h"
#include "thimble_reduce.h"

#include <stddef.h>

void REDUCE_PROD(const thimble_reduce_prod_params *params, const ELEMENT *input, ELEMENT *output)
{
    const thimble_reduce_shape *const shape = &params->shape;
    const ptrdiff_t inner = shape->inner;
    const ptrdiff_t row = inner * shape->second;
    const ptrdiff_t plane = row * shape->middle;

    for (int32_t outer = 0; outer < shape->outer; outer++) {
        for (int32_t middle = 0; middle < shape->middle; middle++) {
            for (ptrdiff_t channel = 0; channel < inner; channel++) {
                const ELEMENT *const from = input + middle * row + channel;
                int32_t product = *from - params->input_offset;
                for (int32_t i = 1; i < shape->first * shape->second; i++) {
                    const ptrdiff_t place = i / shape->second * plane + i % shape->second * inner;
                    product = thimble_reduce_scaled(params,
                                                    (int64_t)product * (from[place] - params->input_offset));
                }
                const int32_t value =
                    thimble_moved(thimble_reduce_scaled(params, product), params->output_offset);
                *output++ = (ELEMENT)(value < LEAST ? LEAST : value > MOST ? MOST : value);
            }
        }
        input += plane * shape->first;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE_MAX of ELEMENT over two axes: the largest value, with `flip` the smallest. */
#include "thimble_pool.h"

#include <stddef.h>

void REDUCE_MAX(const thimble_reduce_shape *shape, int32_t flip, const ELEMENT *input, ELEMENT *output)
{
    const ptrdiff_t inner = shape->inner;
    const ptrdiff_t row = inner * shape->second;
    const ptrdiff_t plane = row * shape->middle;

    for (int32_t outer = 0; outer < shape->outer; outer++) {
        for (int32_t middle = 0; middle < shape->middle; middle++) {
            const ELEMENT *corner = input + middle * row;
            for (int32_t channel = 0; channel < shape->inner; channel++) {
                int32_t best = LEAST;
                for (int32_t first = 0; first < shape->first; first++) {
                    const ELEMENT *element = corner + channel + first * plane;
                    int32_t count = shape->second;
                    do {
                        const int32_t value = *element ^ flip;
                        best = value > best ? value : best;
                        element += inner;
                    } while (--count > 0);
                }
                *output++ = (ELEMENT)(best ^ flip);
            }
        }
        input += plane * shape->first;
    }
}

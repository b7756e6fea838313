/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_activation.h"
#include "thimble_saturate.h"

/*
 * A straight line through int8, clamped: requantisation and the ReLU family. The compiler proves
 * the line equal to TFLite's arithmetic on all 256 inputs before it chooses this kernel.
 */
void thimble_rescale_s8(const int8_t *input,
                        int8_t *output,
                        int32_t size,
                        const thimble_rescale_params *params)
{
    const thimble_rescale_params p = *params;
    if (p.min == INT8_MIN && p.max == INT8_MAX) {
        for (int32_t i = 0; i < size; i++) {
            output[i] = thimble_saturate_s8((p.bias + p.factor * input[i]) >> p.shift);
        }
        return;
    }
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)thimble_clamp((p.bias + p.factor * input[i]) >> p.shift, p.min, p.max);
    }
}

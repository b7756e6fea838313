/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_activation.h"
#include "thimble_saturate.h"

/*
 * A straight line through int8, clamped: requantization and the ReLU family. The compiler proves
 * the line equal to TFLite's arithmetic on all 256 inputs before it chooses this kernel.
 */
void thimble_rescale_s8(const int8_t *input,
                        int8_t *output,
                        int32_t size,
                        const thimble_rescale_params *params)
{
    const thimble_rescale_params p = *params;
    if (p.min == INT8_MIN && p.max == INT8_MAX) {
        for (; size >= 4; size -= 4) {
            output[0] = thimble_saturate_s8((p.bias + p.factor * input[0]) >> p.shift);
            output[1] = thimble_saturate_s8((p.bias + p.factor * input[1]) >> p.shift);
            output[2] = thimble_saturate_s8((p.bias + p.factor * input[2]) >> p.shift);
            output[3] = thimble_saturate_s8((p.bias + p.factor * input[3]) >> p.shift);
            input += 4;
            output += 4;
        }
        for (; size > 0; size--) {
            *output++ = thimble_saturate_s8((p.bias + p.factor * *input++) >> p.shift);
        }
        return;
    }
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)thimble_clamp((p.bias + p.factor * input[i]) >> p.shift, p.min, p.max);
    }
}

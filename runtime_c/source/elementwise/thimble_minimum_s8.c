/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_elementwise.h"

/* The minimum of the stored bytes, as TFLite's `MaximumMinimumBroadcastSlow`. */
void thimble_minimum_s8(const int8_t *input_1,
                        int32_t step_1,
                        const int8_t *input_2,
                        int32_t step_2,
                        int8_t *output,
                        int32_t size)
{
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int8_t)(*input_1 < *input_2 ? *input_1 : *input_2);
        input_1 += step_1;
        input_2 += step_2;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_signal.h"
#include "thimble_significant.h"

void thimble_auto_scale_s16(const int16_t *input, int32_t size, int16_t *output, int32_t *bits)
{
    int32_t largest = 0;
    int32_t shift = 0;

    /* The opposite of -32768 wraps to it, until something larger comes. */
    for (int32_t i = 0; i < size; i++) {
        if (input[i] > largest) {
            largest = input[i];
        } else if (-input[i] > largest) {
            largest = (int16_t)-input[i];
        } else {
            /* Not larger. */
        }
    }
    if (largest > 0) {
        shift = 15 - thimble_significant_bits((uint32_t)largest);
    }
    for (int32_t i = 0; i < size; i++) {
        output[i] = (int16_t)(input[i] * (1 << shift));
    }
    *bits = shift;
}

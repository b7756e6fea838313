/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_signal.h"

#include "thimble_saturate.h"

void thimble_window_s16(
    const int16_t *input, const int16_t *weights, int32_t size, int32_t count, int32_t shift, int16_t *output)
{
    for (int32_t i = 0; i < count; i++) {
        for (int32_t j = 0; j < size; j++) {
            const int32_t value = (*input++ * weights[j]) >> shift;

            *output++ = (int16_t)thimble_clamp(value, INT16_MIN, INT16_MAX);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_float.h"
#include "thimble_saturate.h"

/* The exponential of an element that lies `below` the largest one of its row. */
static inline float exponential(const thimble_softmax_once_params *params, int32_t below)
{
    return below < params->entries ? params->exponentials[below] : 0.0f;
}

THIMBLE_EXACT_FLOAT void
thimble_softmax_once_s8(const thimble_softmax_once_params *params, const int8_t *source, int8_t *target)
{
    const int32_t columns = params->columns;

    for (int32_t row = 0; row < params->rows; row++) {
        int32_t largest = INT8_MIN;
        for (int32_t i = 0; i < columns; i++) {
            largest = source[i] > largest ? source[i] : largest;
        }
        float sum = 0.0f;
        for (int32_t i = 0; i < columns; i++) {
            sum += exponential(params, largest - source[i]);
        }
        const float share = 1.0f / (sum * params->scale);
        for (int32_t i = 0; i < columns; i++) {
            const float value = exponential(params, largest - source[i]) * share;
            target[i] =
                (int8_t)thimble_clamp(thimble_nearest(value) + params->zero_point, INT8_MIN, INT8_MAX);
        }
        source += columns;
        target += columns;
    }
}

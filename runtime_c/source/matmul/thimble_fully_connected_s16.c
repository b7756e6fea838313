/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_dot_s16.h"
#include "thimble_wide.h"

#include <string.h>

/* Rounded to the nearest, halves away from zero. */
static int32_t rounded(double value, int32_t low, int32_t high)
{
    if (value <= (double)low) {
        return low;
    }
    if (value >= (double)high) {
        return high;
    }
    const int32_t whole = (int32_t)value;
    const double rest = value - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}

void thimble_fully_connected_s16(const thimble_fully_connected_s16_params *params,
                                 const int16_t *input,
                                 const int8_t *filters,
                                 const int64_t *bias,
                                 const int64_t *factors,
                                 int16_t *output)
{
    const int32_t step = params->per_channel;
    for (int32_t row = 0; row < params->rows; row++) {
        const int8_t *filter = filters;
        for (int32_t unit = 0; unit < params->units; unit++) {
            const int64_t sum = thimble_dot_s16(input, filter, params->depth) + bias[unit];
            double factor;
            (void)memcpy(&factor, &factors[unit * step], sizeof factor);
            const double value = (double)sum * factor;
            *output++ = (int16_t)rounded(value, params->min, params->max);
            filter += params->depth;
        }
        input += params->depth;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_float.h"

THIMBLE_EXACT_FLOAT void
thimble_batch_norm_s8(const thimble_batch_norm_params *params, const int8_t *source, int8_t *target)
{
    for (int32_t pixel = 0; pixel < params->pixels; pixel++) {
        for (int32_t c = 0; c < params->channels; c++) {
            const float real = (float)(*source++ - params->input_zero_point) * params->input_scale;
            const float product = real * params->gain[c];
            const float value = (product + params->offset[c]) / params->output_scale;
            const int32_t whole = thimble_nearest(value) + params->output_zero_point;
            *target++ = (int8_t)(whole < INT8_MIN ? INT8_MIN : whole > INT8_MAX ? INT8_MAX : whole);
        }
    }
}

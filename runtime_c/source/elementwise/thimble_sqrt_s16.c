/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_wide.h"

THIMBLE_EXACT_FLOAT void
thimble_sqrt_s16(const int16_t *input, int16_t *output, int32_t size, const thimble_sqrt_s16_params *params)
{
    const thimble_sqrt_s16_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        const float real = p.input_scale * (float)(input[i] > 0 ? input[i] : 0);
        const float steps = thimble_sqrt_f32(real) / p.output_scale;
        output[i] = steps < 32767.0f ? (int16_t)steps : INT16_MAX;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_multiplier.h"
#include "thimble_saturate.h"
#include "thimble_wide.h"

void thimble_prelu_s16(const int16_t *input,
                       int32_t step_input,
                       const int8_t *alpha,
                       int32_t step_alpha,
                       int16_t *output,
                       int32_t size,
                       const thimble_prelu_s16_params *params)
{
    const thimble_prelu_s16_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        const int32_t x = *input;
        const int32_t y =
            x >= 0 ? thimble_scaled(x, p.multiplier, p.shift)
                   : thimble_scaled(x * (*alpha + p.alpha_offset), p.alpha_multiplier, p.alpha_shift);
        output[i] = (int16_t)thimble_clamp_s16(y, INT16_MIN, INT16_MAX);
        input += step_input;
        alpha += step_alpha;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "arm_nnsupportfunctions.h"
#include "thimble_activation.h"
#include "thimble_saturate.h"

/* x where x >= 0, alpha * x elsewhere (TFLite `BroadcastPrelu4DSlow`). */
void thimble_prelu_s8(const int8_t *input,
                      int32_t step_input,
                      const int8_t *alpha,
                      int32_t step_alpha,
                      int8_t *output,
                      int32_t size,
                      const thimble_prelu_params *params)
{
    const thimble_prelu_params p = *params;
    for (int32_t i = 0; i < size; i++) {
        const int32_t x = *input + p.input_offset;
        int32_t y;
        if (x >= 0) {
            y = arm_nn_requantize(x, p.identity_multiplier, p.identity_shift);
        } else {
            y = arm_nn_requantize(x * (*alpha + p.alpha_offset), p.alpha_multiplier, p.alpha_shift);
        }
        output[i] = thimble_saturate_s8(y + p.output_offset);
        input += step_input;
        alpha += step_alpha;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_activation.h"
#include "thimble_saturate.h"

static inline int32_t high_word(int32_t a, int32_t b)
{
    return (int32_t)(((int64_t)a * b) >> 32);
}

/* x where x >= 0, alpha * x elsewhere (TFLite `BroadcastPrelu4DSlow`), its roundings merged as in
 * thimble_mul_s8. */
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
            const int32_t shifted = (int32_t)((uint32_t)x * (uint32_t)p.factor);
            y = (high_word(shifted, p.multiplier) + p.bias) >> p.shift;
        } else {
            const uint32_t product =
                (uint32_t)x * (uint32_t)p.alpha_factor * (uint32_t)(*alpha + p.alpha_offset);
            const int32_t high = high_word((int32_t)product, p.alpha_multiplier);
            y = (high + ((high >> 31) & p.alpha_negative_bias) + p.alpha_bias) >> p.alpha_shift;
        }
        output[i] = thimble_saturate_s8(y);
        input += step_input;
        alpha += step_alpha;
    }
}

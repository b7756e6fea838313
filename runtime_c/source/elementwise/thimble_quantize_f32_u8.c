/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_activation.h"

/* TFLite `AffineQuantize`, saturating where the quotient leaves int32. */
void thimble_quantize_f32_u8(
    const float *input, uint8_t *output, int32_t size, float scale, int32_t zero_point)
{
    const int32_t min = -zero_point;
    const int32_t max = UINT8_MAX - zero_point;
    for (int32_t i = 0; i < size; i++) {
        const float quotient = input[i] / scale;
        int32_t rounded;
        if (quotient > (float)min && quotient < (float)max) {
            const int32_t whole = (int32_t)quotient;
            const float rest = quotient - (float)whole;
            rounded = whole + (rest >= 0.5f) - (rest <= -0.5f);
        } else if (quotient >= (float)max) {
            rounded = max;
        } else if (quotient <= (float)min) {
            rounded = min;
        } else {
            rounded = 0; /* not a number */
        }
        output[i] = (uint8_t)(rounded + zero_point);
    }
}

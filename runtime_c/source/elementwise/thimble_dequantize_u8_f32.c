/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_activation.h"

/* TFLite `Dequantize`: one rounding, that of the product. */
void thimble_dequantize_u8_f32(
    const uint8_t *input, float *output, int32_t size, float scale, int32_t zero_point)
{
    for (int32_t i = 0; i < size; i++) {
        output[i] = scale * (float)(input[i] - zero_point);
    }
}

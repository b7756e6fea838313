/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

THIMBLE_EXACT_FLOAT void
thimble_l2_normalization_f32(const float *input, float *output, int32_t rows, int32_t columns)
{
    for (int32_t row = 0; row < rows; row++, input += columns, output += columns) {
        float total = 0.0f;
        for (int32_t i = 0; i < columns; i++) {
            total += input[i] * input[i];
        }
        const float root = thimble_sqrt_f32(total);
        const float length = root < 1e-6f ? 1e-6f : root;
        for (int32_t i = 0; i < columns; i++) {
            output[i] = input[i] / length;
        }
    }
}

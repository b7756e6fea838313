/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

THIMBLE_EXACT_FLOAT void
thimble_log_softmax_f32(const float *input, float *output, int32_t rows, int32_t columns)
{
    for (int32_t row = 0; row < rows; row++) {
        float max = input[0];
        float sum = 0.0f;
        for (int32_t i = 1; i < columns; i++) {
            max = thimble_max_f32(input[i], max);
        }
        for (int32_t i = 0; i < columns; i++) {
            output[i] = input[i] - max;
            sum += thimble_exp_f32(output[i]);
        }
        sum = thimble_log_f32(sum);
        for (int32_t i = 0; i < columns; i++) {
            output[i] -= sum;
        }
        input += columns;
        output += columns;
    }
}

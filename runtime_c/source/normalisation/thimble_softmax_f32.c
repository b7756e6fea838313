/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

THIMBLE_EXACT_FLOAT void
thimble_softmax_f32(const float *input, float *output, int32_t rows, int32_t columns, float beta)
{
    for (int32_t row = 0; row < rows; row++) {
        float max = input[0];
        float sum = 0.0f;
        for (int32_t i = 1; i < columns; i++) {
            max = thimble_max_f32(input[i], max);
        }
        for (int32_t i = 0; i < columns; i++) {
            output[i] = thimble_exp_f32((input[i] - max) * beta);
            sum += output[i];
        }
        for (int32_t i = 0; i < columns; i++) {
            output[i] = output[i] / sum;
        }
        input += columns;
        output += columns;
    }
}

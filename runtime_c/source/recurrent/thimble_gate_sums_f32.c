/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_recurrent_f32.h"

THIMBLE_EXACT_FLOAT void thimble_gate_sums_f32(
    const float *weights, const float *x, int32_t columns, const float *start, float *sums, int32_t rows)
{
    for (int32_t row = 0; row < rows; row++) {
        float sum = start[row];
        for (int32_t i = 0; i < columns; i++) {
            sum += weights[i] * x[i];
        }
        weights += columns;
        sums[row] = sum;
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

/* Of a column that may lie beside the row. */
static THIMBLE_EXACT_FLOAT float
square(const thimble_local_response_norm_params *p, const float *row, int32_t column)
{
    return column >= 0 && column < p->columns ? row[column] * row[column] * p->alpha : 0.0f;
}

static THIMBLE_EXACT_FLOAT float factor(float base, float beta)
{
    if (beta >= 1.0f && beta <= 1.0f) {
        return 1.0f / base;
    }
    if (beta >= 0.5f && beta <= 0.5f) {
        return 1.0f / thimble_sqrt_f32(base);
    }
    return thimble_pow_f32(base, -beta);
}

THIMBLE_EXACT_FLOAT void thimble_local_response_norm_f32(const thimble_local_response_norm_params *params,
                                                         const float *input,
                                                         float *output)
{
    const thimble_local_response_norm_params p = *params;

    for (int32_t row = 0; row < p.rows; row++, input += p.columns, output += p.columns) {
        float total = 0.0f;
        for (int32_t i = 0; i < p.radius; i++) {
            total += square(&p, input, i);
        }
        for (int32_t i = 0; i < p.columns; i++) {
            total += square(&p, input, i + p.radius);
            output[i] = input[i] * factor(p.bias + total, p.beta);
            total -= square(&p, input, i - p.radius);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"

THIMBLE_EXACT_FLOAT static float *
one_product(const thimble_matmul_f32_params *p, const float *x, const float *y, float *output)
{
    for (int32_t row = 0; row < p->rows; row++) {
        for (int32_t column = 0; column < p->columns; column++) {
            const float *a = x + row * p->x.outer;
            const float *b = y + column * p->y.outer;
            float sum = 0.0f;
            for (int32_t i = 0; i < p->depth; i++, a += p->x.inner, b += p->y.inner) {
                sum += *a * *b;
            }
            *output++ = sum;
        }
    }
    return output;
}

void thimble_batch_matmul_f32(const thimble_matmul_f32_params *params,
                              const float *x,
                              const float *y,
                              float *output)
{
    const thimble_matmul_f32_params p = *params;
    for (int32_t i = 0; i < p.batch[0]; i++) {
        for (int32_t j = 0; j < p.batch[1]; j++) {
            for (int32_t k = 0; k < p.batch[2]; k++) {
                const float *a = x + i * p.x.batch[0] + j * p.x.batch[1] + k * p.x.batch[2];
                const float *b = y + i * p.y.batch[0] + j * p.y.batch[1] + k * p.y.batch[2];
                output = one_product(&p, a, b, output);
            }
        }
    }
}

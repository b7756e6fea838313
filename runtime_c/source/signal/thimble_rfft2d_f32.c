/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_f32.h"
#include "thimble_fourier_f32.h"

#include <stddef.h>

/* One column of numbers `stride` floats apart. */
static void column(const thimble_fourier_f32 *plan, float *data, int32_t stride, float *work)
{
    for (int32_t i = 0; i < plan->length; i++) {
        float *const to = work + 2 * plan->order[i];

        to[0] = data[i * stride];
        to[1] = data[i * stride + 1];
    }
    thimble_fourier_passes_f32(plan, work);
    for (int32_t i = 0; i < plan->length; i++) {
        data[i * stride] = work[2 * i];
        data[i * stride + 1] = work[2 * i + 1];
    }
}

/* Numbers whose squares overrun float32, or nearly vanish, are scaled by a power of 2. */
THIMBLE_EXACT_FLOAT static float magnitude_of(float real, float imag)
{
    const float squares = real * real + imag * imag;
    const float up = 18446744073709551616.0f; /* 2^64 */
    const float down = 5.421010862427522e-20f;

    if (squares > 1e30f) {
        real *= down;
        imag *= down;
        return thimble_sqrt_f32(real * real + imag * imag) * up;
    }
    if (squares < 1e-30f) {
        real *= up;
        imag *= up;
        return thimble_sqrt_f32(real * real + imag * imag) * down;
    }
    return thimble_sqrt_f32(squares);
}

void thimble_rfft2d_f32(const thimble_rfft2d_f32_params *params,
                        const float *input,
                        float *magnitude,
                        float *real,
                        float *imaginary,
                        float *work)
{
    const thimble_rfft2d_f32_params p = *params;
    const int32_t numbers = p.width / 2 + 1;
    const int32_t size = p.height * numbers;
    int32_t place = 0;

    for (int32_t slice = 0; slice < p.slices; slice++, input += p.input_h * p.input_w) {
        for (int32_t y = 0; y < p.height; y++) {
            const int32_t given = y < p.input_h;

            thimble_rfft_f32(&p.rows, given ? input + y * p.input_w : input, given ? p.input_w : 0,
                             work + 2 * y * numbers);
        }
        for (int32_t x = 0; p.height > 1 && x < numbers; x++) {
            column(&p.columns, work + 2 * x, 2 * numbers, work + 2 * size);
        }
        for (int32_t i = 0; i < size; i++, place++) {
            if (magnitude != NULL) {
                magnitude[place] = magnitude_of(work[2 * i], work[2 * i + 1]);
            }
            if (real != NULL) {
                real[place] = work[2 * i];
            }
            if (imaginary != NULL) {
                imaginary[place] = work[2 * i + 1];
            }
        }
    }
}

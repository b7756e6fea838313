/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_fourier_f32.h"

/* The transform of `length` pairs of real samples to the `length` + 1 numbers of the samples. */
THIMBLE_EXACT_FLOAT static void of_real(float *data, int32_t length, const float *halves)
{
    const float first = data[0];
    const float second = data[1];

    data[0] = first + second;
    data[1] = 0.0f;
    data[2 * length] = first - second;
    data[2 * length + 1] = 0.0f;
    for (int32_t k = 1; k <= length / 2; k++) {
        float *const low = data + 2 * k;
        float *const high = data + 2 * (length - k);
        const float *const by = halves + 2 * (k - 1);
        const float sum_real = low[0] + high[0];
        const float sum_imag = low[1] - high[1];
        const float real = low[0] - high[0];
        const float imag = low[1] + high[1];
        const float turned_real = real * by[0] - imag * by[1];
        const float turned_imag = real * by[1] + imag * by[0];

        low[0] = (sum_real + turned_real) * 0.5f;
        low[1] = (sum_imag + turned_imag) * 0.5f;
        high[0] = (sum_real - turned_real) * 0.5f;
        high[1] = (turned_imag - sum_imag) * 0.5f;
    }
}

void thimble_rfft_f32(const thimble_rfft_f32_plan *rfft, const float *input, int32_t count, float *output)
{
    const int32_t length = rfft->pairs.length;

    for (int32_t i = 0; i < 2 * length; i++) {
        output[2 * rfft->pairs.order[i / 2] + i % 2] = i < count ? input[i] : 0.0f;
    }
    thimble_fourier_passes_f32(&rfft->pairs, output);
    of_real(output, length, rfft->halves);
}

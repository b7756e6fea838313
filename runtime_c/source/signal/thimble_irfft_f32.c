/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_exact_float.h"
#include "thimble_fourier_f32.h"

/* Real and imaginary part change places: what the passes then do is the inverse transform. */
static inline void put(float *data, int32_t place, float real, float imag)
{
    data[2 * place] = imag;
    data[2 * place + 1] = real;
}

THIMBLE_EXACT_FLOAT static void row(const thimble_rfft_f32_plan *rfft, const float *input, float *output)
{
    const int32_t length = rfft->pairs.length;
    const int16_t *const order = rfft->pairs.order;
    const float last = input[2 * length];
    const float part = 0.5f / (float)length; /* a power of 2 */

    put(output, order[0], input[0] + last, input[0] - last);
    for (int32_t k = 1; k <= length / 2; k++) {
        const float *const low = input + 2 * k;
        const float *const high = input + 2 * (length - k);
        const float *const by = rfft->halves + 2 * (k - 1);
        const float even_real = low[0] + high[0];
        const float even_imag = low[1] - high[1];
        const float real = low[0] - high[0];
        const float imag = low[1] + high[1];
        const float odd_real = real * by[0] + imag * by[1];
        const float odd_imag = imag * by[0] - real * by[1];

        put(output, order[k], even_real + odd_real, even_imag + odd_imag);
        put(output, order[length - k], even_real - odd_real, odd_imag - even_imag);
    }
    thimble_fourier_passes_f32(&rfft->pairs, output);
    for (int32_t i = 0; i < 2 * length; i += 2) {
        const float imag = output[i] * part;

        output[i] = output[i + 1] * part;
        output[i + 1] = imag;
    }
}

void thimble_irfft_f32(const thimble_rfft_f32_plan *rfft, const float *input, int32_t rows, float *output)
{
    for (int32_t i = 0; i < rows; i++) {
        row(rfft, input, output);
        input += 2 * rfft->pairs.length + 2;
        output += 2 * rfft->pairs.length;
    }
}

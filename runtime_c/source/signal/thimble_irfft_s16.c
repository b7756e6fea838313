/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fft.h"

static inline int32_t halved(int32_t value)
{
    return thimble_fft_round((int16_t)value * THIMBLE_FFT_HALF);
}

/* Real and imaginary part change places: what the passes then do is the inverse transform. */
static inline void put(int16_t *data, int32_t place, int32_t real, int32_t imag)
{
    data[2 * place] = (int16_t)imag;
    data[2 * place + 1] = (int16_t)real;
}

static void row(const thimble_rfft *rfft, const int16_t *input, int16_t *output)
{
    const int32_t length = rfft->length / 2;
    const int32_t last = input[2 * length];

    put(output, rfft->order[0], halved(input[0] + last), halved(input[0] - last));
    for (int32_t k = 1; k <= length / 2; k++) {
        const int16_t *const low = input + 2 * k;
        const int16_t *const high = input + 2 * (length - k);
        const int16_t *const by = rfft->halves + 2 * (k - 1);
        const int32_t low_real = halved(low[0]);
        const int32_t low_imag = halved(low[1]);
        const int32_t high_real = halved(high[0]);
        const int32_t high_imag = halved(-high[1]);
        const int32_t even_real = (int16_t)(low_real + high_real);
        const int32_t even_imag = (int16_t)(low_imag + high_imag);
        const int32_t real = (int16_t)(low_real - high_real);
        const int32_t imag = (int16_t)(low_imag - high_imag);
        const int32_t odd_real = thimble_fft_round(real * by[0] + imag * by[1]);
        const int32_t odd_imag = thimble_fft_round(imag * by[0] - real * by[1]);

        put(output, rfft->order[k], even_real + odd_real, even_imag + odd_imag);
        put(output, rfft->order[length - k], even_real - odd_real, odd_imag - even_imag);
    }
    thimble_fft_passes_s16(rfft, output);
    for (int32_t i = 0; i < rfft->length; i += 2) {
        const int16_t imag = output[i];

        output[i] = output[i + 1];
        output[i + 1] = imag;
    }
}

void thimble_irfft_s16(const thimble_rfft *rfft, const int16_t *input, int32_t rows, int16_t *output)
{
    for (int32_t i = 0; i < rows; i++, input += rfft->length + 2, output += rfft->length) {
        row(rfft, input, output);
    }
}

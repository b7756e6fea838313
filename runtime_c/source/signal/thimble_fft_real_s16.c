/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fft.h"

void thimble_fft_real_s16(int16_t *data, int32_t length, const int16_t *halves)
{
    const int32_t first = thimble_fft_round(data[0] * THIMBLE_FFT_HALF);
    const int32_t second = thimble_fft_round(data[1] * THIMBLE_FFT_HALF);

    data[0] = (int16_t)(first + second);
    data[1] = 0;
    data[2 * length] = (int16_t)(first - second);
    data[2 * length + 1] = 0;
    for (int32_t k = 1; k <= length / 2; k++) {
        int16_t *const low = data + 2 * k;
        int16_t *const high = data + 2 * (length - k);
        const int16_t *const by = halves + 2 * (k - 1);
        const int32_t low_real = thimble_fft_round(low[0] * THIMBLE_FFT_HALF);
        const int32_t low_imag = thimble_fft_round(low[1] * THIMBLE_FFT_HALF);
        const int32_t high_real = thimble_fft_round(high[0] * THIMBLE_FFT_HALF);
        const int32_t high_imag = thimble_fft_round((int16_t)-high[1] * THIMBLE_FFT_HALF);
        const int32_t sum_real = (int16_t)(low_real + high_real);
        const int32_t sum_imag = (int16_t)(low_imag + high_imag);
        const int32_t real = (int16_t)(low_real - high_real);
        const int32_t imag = (int16_t)(low_imag - high_imag);
        const int32_t turned_real = thimble_fft_round(real * by[0] - imag * by[1]);
        const int32_t turned_imag = thimble_fft_round(real * by[1] + imag * by[0]);

        low[0] = (int16_t)((sum_real + turned_real) >> 1);
        low[1] = (int16_t)((sum_imag + turned_imag) >> 1);
        high[0] = (int16_t)((sum_real - turned_real) >> 1);
        high[1] = (int16_t)((turned_imag - sum_imag) >> 1);
    }
}

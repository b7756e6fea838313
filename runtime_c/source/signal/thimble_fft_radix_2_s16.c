/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fft.h"

void thimble_fft_radix_2_s16(int16_t *data, int32_t length)
{
    for (int32_t i = 0; i < 2 * length; i += 4) {
        for (int32_t part = i; part < i + 2; part++) {
            const int32_t a = thimble_fft_round(data[part] * THIMBLE_FFT_HALF);
            const int32_t halved = thimble_fft_round(data[part + 2] * THIMBLE_FFT_HALF);
            const int32_t b = thimble_fft_round(halved * INT16_MAX);

            data[part] = (int16_t)(a + b);
            data[part + 2] = (int16_t)(a - b);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fft.h"

void thimble_fft_passes_s16(const thimble_rfft *rfft, int16_t *data)
{
    const int32_t length = rfft->length / 2;
    int32_t apart = 1;

    while (length / apart % 4 == 0) {
        apart *= 4;
    }
    if (length > apart) {
        thimble_fft_radix_2_s16(data, length);
        apart = 2;
    } else {
        apart = 1;
    }
    for (; apart < length; apart *= 4) {
        thimble_fft_radix_4_s16(data, length, apart, length / (4 * apart), rfft->twiddles);
    }
}

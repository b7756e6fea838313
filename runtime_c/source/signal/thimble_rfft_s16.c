/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fft.h"

void thimble_rfft_s16(const thimble_rfft *rfft, const int16_t *input, int32_t count, int16_t *output)
{
    for (int32_t i = 0; i < rfft->length; i++) {
        output[2 * rfft->order[i / 2] + i % 2] = i < count ? input[i] : 0;
    }
    thimble_rfft_in_place_s16(rfft, output);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fft.h"

void thimble_rfft_in_place_s16(const thimble_rfft *rfft, int16_t *data)
{
    thimble_fft_passes_s16(rfft, data);
    thimble_fft_real_s16(data, rfft->length / 2, rfft->halves);
}

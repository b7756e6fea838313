/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_fft.h"
#include "thimble_significant.h"
#include "thimble_spectrum.h"

#define WINDOW_BITS 12

static inline int32_t weighted(const thimble_features *features, const int16_t *samples, int32_t i)
{
    return (int16_t)((samples[i] * features->weights[i]) >> WINDOW_BITS);
}

/* How far the largest windowed sample can be shifted. -32768 has no opposite, and counts as silence. */
static int32_t headroom(const thimble_features *features, const int16_t *samples)
{
    int32_t largest = 0;

    for (int32_t i = 0; i < features->window; i++) {
        const int32_t value = weighted(features, samples, i);
        const int32_t magnitude = (int16_t)(value < 0 ? -value : value);

        largest = magnitude > largest ? magnitude : largest;
    }
    return 15 - thimble_significant_bits((uint32_t)largest);
}

void thimble_features_s16(const thimble_features *features,
                          const int16_t *samples,
                          uint32_t *noise,
                          uint32_t *spectrum,
                          uint64_t *sums,
                          int16_t *output)
{
    const int32_t channels = features->bank.channels;
    const int32_t shift = headroom(features, samples);
    int16_t *const data = (int16_t *)spectrum;
    uint32_t *const signal = (uint32_t *)sums;

    for (int32_t i = 0; i < features->rfft.length; i++) {
        const int32_t value = i < features->window ? weighted(features, samples, i) : 0;

        data[2 * features->rfft.order[i / 2] + i % 2] = (int16_t)(value * (1 << shift));
    }
    thimble_rfft_in_place_s16(&features->rfft, data);
    thimble_energy_s16(data, features->first, features->end, spectrum);
    thimble_filter_bank_u32(&features->bank, spectrum, sums);
    thimble_square_roots_u64(sums, channels, shift, signal);
    thimble_subtract_noise_u32(&features->noise, channels, signal, noise, signal, noise);
    if (features->gain != 0) {
        thimble_pcan_u32(features->gain, features->snr_shift, channels, noise, signal, signal);
    }
    thimble_logs_u32(signal, channels, features->log_scale, features->correction_bits, output);
}

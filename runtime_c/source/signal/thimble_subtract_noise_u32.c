/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_spectrum.h"

void thimble_subtract_noise_u32(const thimble_noise *params,
                                int32_t channels,
                                const uint32_t *signal,
                                uint32_t *noise,
                                uint32_t *output,
                                uint32_t *estimates)
{
    for (int32_t i = 0; i < channels; i++) {
        const uint32_t value = signal[i];
        const uint32_t scaled = value << params->scale_bits;
        const uint64_t mean = (uint64_t)scaled * (uint32_t)params->smoothing[i & 1] +
                              (uint64_t)noise[i] * (uint32_t)params->rest[i & 1];
        const uint32_t floor = (uint32_t)(((uint64_t)value * (uint32_t)params->floor) >> params->bits);
        uint32_t estimate = (uint32_t)(mean >> params->bits);
        uint32_t left;

        noise[i] = estimate;
        if (estimate > scaled) {
            estimate = scaled;
            if (params->clamping != 0) {
                noise[i] = estimate;
            }
        }
        estimates[i] = noise[i];
        left = (scaled - estimate) >> params->scale_bits;
        output[i] = left > floor ? left : floor;
    }
}

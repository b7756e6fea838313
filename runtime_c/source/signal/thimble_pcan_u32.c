/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_significant.h"
#include "thimble_spectrum.h"

#define SNR_BITS 12
#define OUTPUT_BITS 6

/* A parabola for each power of two: its three coefficients, then a number that is not used. */
static int32_t gain_at(uint32_t noise, const int16_t *gain)
{
    if (noise <= 2U) {
        return gain[noise];
    }
    const int32_t bits = thimble_significant_bits(noise);
    const int16_t *const piece = gain + 4 * bits - 6;
    const uint32_t shifted = bits < 11 ? noise << (11 - bits) : noise >> (bits - 11);
    const int32_t fraction = (int32_t)(shifted & 0x3FFU);
    const int32_t slope = ((piece[2] * fraction) >> 5) + piece[1] * 32;

    return (int16_t)(((slope * fraction + (1 << 14)) >> 15) + piece[0]);
}

/* x^2 / 4 below 2, x - 1 above. */
static uint32_t shrunk(uint32_t snr)
{
    if (snr < 2U << SNR_BITS) {
        return (snr * snr) >> (2 + 2 * SNR_BITS - OUTPUT_BITS);
    }
    return (snr >> (SNR_BITS - OUTPUT_BITS)) - (1U << OUTPUT_BITS);
}

void thimble_pcan_u32(const int16_t *gain,
                      int32_t snr_shift,
                      int32_t channels,
                      const uint32_t *noise,
                      const uint32_t *signal,
                      uint32_t *output)
{
    for (int32_t i = 0; i < channels; i++) {
        const uint32_t by = (uint32_t)gain_at(noise[i], gain);

        output[i] = shrunk((uint32_t)(((uint64_t)signal[i] * by) >> snr_shift));
    }
}

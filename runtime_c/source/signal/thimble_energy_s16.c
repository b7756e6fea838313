/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_spectrum.h"

void thimble_energy_s16(const int16_t *spectrum, int32_t first, int32_t end, uint32_t *energy)
{
    for (int32_t i = first; i < end; i++) {
        const int32_t real = spectrum[2 * i];
        const int32_t imag = spectrum[2 * i + 1];

        energy[i] = (uint32_t)(real * real) + (uint32_t)(imag * imag);
    }
}

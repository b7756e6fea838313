/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_spectrum.h"

void thimble_energies_s16(
    const int16_t *spectrum, int32_t first, int32_t end, int32_t count, uint32_t *energy)
{
    for (int32_t i = 0; i < first; i++) {
        energy[i] = 0;
    }
    thimble_energy_s16(spectrum, first, end, energy);
    for (int32_t i = end; i < count; i++) {
        energy[i] = 0;
    }
}

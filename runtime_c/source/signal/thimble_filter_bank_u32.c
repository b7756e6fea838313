/* SPDX-License-Identifier: Apache-2.0 */
#include "thimble_spectrum.h"

void thimble_filter_bank_u32(const thimble_filter_bank *bank, const uint32_t *energy, uint64_t *sums)
{
    uint64_t next = 0;

    for (int32_t i = 0; i <= bank->channels; i++) {
        const uint32_t *const from = energy + bank->starts[i];
        const int16_t *const weights = bank->weights + bank->weight_starts[i];
        const int16_t *const unweights = bank->unweights + bank->weight_starts[i];
        uint64_t sum = next;

        next = 0;
        for (int32_t j = 0; j < bank->widths[i]; j++) {
            sum += (uint64_t)from[j] * (uint64_t)weights[j];
            next += (uint64_t)from[j] * (uint64_t)unweights[j];
        }
        if (i > 0) {
            sums[i - 1] = sum;
        }
    }
}

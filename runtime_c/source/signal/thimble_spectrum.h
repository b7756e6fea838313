/* SPDX-License-Identifier: Apache-2.0 */
/* What operators and the front end share of the stages from a spectrum to features. */
#ifndef THIMBLE_SPECTRUM_H
#define THIMBLE_SPECTRUM_H

#include "thimble_signal.h"

/** Squared magnitudes of the complex numbers from `first` to before `end`, each at its index. The output may
 * be the input. */
void thimble_energy_s16(const int16_t *spectrum, int32_t first, int32_t end, uint32_t *energy);

/** Square roots, rounded to nearest, shifted right. The output may be the input. */
void thimble_square_roots_u64(const uint64_t *sums, int32_t count, int32_t shift, uint32_t *roots);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sums under 3x3 windows of one channel, for cores without the DSP extension. */
#ifndef THIMBLE_SUM_3X3_H
#define THIMBLE_SUM_3X3_H

#include "thimble_dsp.h"

/* Sums to `end`, an even number of them if `stride` is 1, the other one being 2. `first`: the pairs of the
 * window's first line; words from pair to pair, 1 or 3, and from line to line; `taps`: two words a line,
 * of taps (0, 1) and (1, 2). */
void thimble_sum_3x3_s16(const thimble_pair *first,
                         int32_t pair,
                         int32_t line,
                         int32_t stride,
                         const uint32_t *taps,
                         int32_t *sums,
                         const int32_t *end);

#endif

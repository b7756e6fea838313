/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of a convolution as columns of bytes, and their products with filters in vectors of sixteen. */
#ifndef THIMBLE_LANE_COLUMNS_H
#define THIMBLE_LANE_COLUMNS_H

#include "thimble_requant.h"

#include <stdint.h>

/* Two columns of `taps` bytes times `channels` filters (parameters of thimble_convolve_lanes_s8). Columns and
 * outputs may be the same. Columns are read in whole vectors. `quick`: thimble_quick_lanes. */
void thimble_mat_mult_lanes_s8(const int32_t *parameters,
                               const int8_t *column_0,
                               const int8_t *column_1,
                               int32_t taps,
                               int32_t channels,
                               int32_t quick,
                               const thimble_requant *requant,
                               int8_t *output_0,
                               int8_t *output_1);

/* Whether the scaling of all whole fours of channels is of the kind that takes the quick form. */
int32_t thimble_quick_lanes(const int32_t *parameters, int32_t taps, int32_t channels);

#endif

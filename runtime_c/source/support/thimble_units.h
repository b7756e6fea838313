/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of four units of a fully connected layer, and their outputs. */
#ifndef THIMBLE_UNITS_H
#define THIMBLE_UNITS_H

#include "thimble_requant.h"

#include <stdint.h>

/* Sums of four units of filters packed in four bits: their biases, `offset` (-8 times the sum of the inputs)
 * and `depth` taps; returns what follows. */
const int32_t *thimble_sum_units_s4(
    const int8_t *input, const int32_t *parameters, int32_t depth, int32_t offset, int32_t *restrict sums);

int32_t thimble_sum_s8(const int8_t *input, int32_t size);

/* Outputs of up to four units by their scaling (fully connected); returns what follows the last one. */
int8_t *thimble_put_units_s8(const int32_t *sums,
                             const int32_t *scaling,
                             int32_t count,
                             const thimble_requant *requant,
                             int8_t *output);

/* Sums of four units: their biases and `depth` taps (fully connected parameters); returns what follows. */
const int32_t *
thimble_sum_units_s8(const int8_t *input, const int32_t *parameters, int32_t depth, int32_t *restrict sums);

/* The same of filters by lanes: sixteen bytes of each of the four units in turn. */
const int32_t *thimble_sum_units_lanes_s8(const int8_t *input,
                                          const int32_t *parameters,
                                          int32_t depth,
                                          int32_t *restrict sums);

/* The same of filters by lanes in four bits: two units in a byte. `offset` as for thimble_sum_units_s4. */
const int32_t *thimble_sum_units_lanes_s4(
    const int8_t *input, const int32_t *parameters, int32_t depth, int32_t offset, int32_t *restrict sums);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalisation of rows in fixed point.
 */
#ifndef THIMBLE_NORM_H
#define THIMBLE_NORM_H

#include <stdint.h>

/** Each row less its zero point, divided by its Euclidean length, to scale 1/128 and zero point 0.
 *  The output may begin at, or anywhere below, the input. A row's sum of squares fits int32. */
void thimble_l2_normalization_s8(
    const int8_t *input, int8_t *output, int32_t rows, int32_t columns, int32_t zero_point);

#endif

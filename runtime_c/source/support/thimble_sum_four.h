/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THIMBLE_SUM_FOUR_H
#define THIMBLE_SUM_FOUR_H

#include <stdint.h>

/* Sums of four filters with `depth` inputs; returns the parameters that follow. */
typedef const int32_t *(*thimble_sum_four)(const int8_t *input,
                                           const int32_t *parameters,
                                           int32_t depth,
                                           int32_t *restrict sums);

#endif

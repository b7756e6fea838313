/* SPDX-License-Identifier: Apache-2.0 */
/* Products of int16 inputs and int8 filters. */
#ifndef THIMBLE_DOT_S16_H
#define THIMBLE_DOT_S16_H

#include <stdint.h>

/** Sum of `depth` products, which may be any number. */
int64_t thimble_dot_s16(const int16_t *input, const int8_t *filter, int32_t depth);

#endif

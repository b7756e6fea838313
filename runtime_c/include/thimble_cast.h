/* SPDX-License-Identifier: Apache-2.0 */
#ifndef THIMBLE_CAST_H
#define THIMBLE_CAST_H

#include <stdint.h>

/** Integers of `input_bytes` (1, 2, 4) to `output_bytes`: narrower ones keep the low bits, wider ones the
 * sign. The output may be the input where it is no wider. */
void thimble_cast(const void *input, int32_t input_bytes, int32_t count, void *output, int32_t output_bytes);

#endif

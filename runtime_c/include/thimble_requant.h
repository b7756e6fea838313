/* SPDX-License-Identifier: Apache-2.0 */
/* How int32 sums become int8: what convolutions, fully connected layers and matrix products take. */
#ifndef THIMBLE_REQUANT_H
#define THIMBLE_REQUANT_H

#include <stdint.h>

/* How sums become int8. Each channel has a multiplier (Q0.31) and an int8 shift code:
 *
 * code >= 0: right shift by code + 1 after the multiplication. The toolchain has proved that no sum of this
 * channel reaches 2^30 in magnitude. code < 0:  TFLite's left shift (negative: right) is code + 64, and sums
 * may be anything.
 */
#define THIMBLE_SHIFT_BIAS 64
/* A code that no shift of TFLite's has: the multiplier is the bits of a float, and sum * multiplier is
 * rounded as ONNX Runtime does it, to float and then halves to even. Convolutions only. */
#define THIMBLE_SHIFT_FLOAT (-1)

typedef struct {
    int32_t output_offset;
    int32_t activation_min;
    int32_t activation_max;
} thimble_requant;

#endif

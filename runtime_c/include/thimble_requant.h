/* SPDX-License-Identifier: Apache-2.0 */
/* How int32 sums become int8: what convolutions, fully connected layers and matrix products take. */
#ifndef THIMBLE_REQUANT_H
#define THIMBLE_REQUANT_H

#include <stdint.h>

/* Each channel has a multiplier (Q0.31) and an int8 shift code.
 *
 * code >= 0: the product is shifted right by code + 1. The toolchain has proved that the magnitude of every
 * sum of this channel is below 2^30. code < 0: code + THIMBLE_SHIFT_BIAS is TFLite's left shift (negative:
 * right), and sums may have any value.
 */
#define THIMBLE_SHIFT_BIAS 64
/* This code, which stands for no shift, says that the multiplier is the bits of a float: the product with the
 * sum is rounded as ONNX Runtime rounds it, to float, then to the nearest integer, halves to even.
 * Convolutions only. */
#define THIMBLE_SHIFT_FLOAT (-1)

/* This bit of a code of int16 says that the sum is rounded once, and that the activation is int8's own range:
 * floor((sum * multiplier / 2^32 + rounding) / 2^(code + 1)). The toolchain has proved that this is the same,
 * with a rounding term and a bias for it. Convolutions of pairs of channels only. */
#define THIMBLE_SHIFT_ONCE 256

/* Added to the scaled sum, and the range that the result is then held within. */
typedef struct {
    int32_t output_offset;
    int32_t activation_min;
    int32_t activation_max;
} thimble_requant;

#endif

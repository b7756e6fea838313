/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of four pixels, two in a word, and their products with filters. */
#ifndef THIMBLE_PACKED_H
#define THIMBLE_PACKED_H

#include <stdint.h>

/* `count` taps of two neighbouring pixels into every other word: a[i] + 65536 * b[i]. Returns what follows.
 */
uint32_t *thimble_pack_pixels_s8(const int8_t *a, const int8_t *b, int32_t count, uint32_t *to);

/* The runs of four channels (thimble_convolve_packed_s8) times the taps from `columns` to `end`, two words
 * each; returns the parameters after them. sums: without biases, for each channel those of four pixels. */
const int32_t *
thimble_sum_packed_s8(const uint32_t *columns, const uint32_t *end, const int32_t *runs, uint32_t *sums);

#endif

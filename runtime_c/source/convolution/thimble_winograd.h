/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's F(2x2, 3x3) in integers: the parts of thimble_convolve_winograd_s8.
 *
 * A tile of 2x2 outputs sees 4x4 pixels d. With B^T d B = v and 4 * G g G^T = u its outputs are
 * A^T (u * v) A / 4, sums over the input channels of 16 products instead of 36, where
 *
 *     B^T = 1  0 -1  0    2 G = 2  0  0    A^T = 1  1  1  0
 *           0  1  1  0          1  1  1          0  1 -1 -1
 *           0 -1  1  0          1 -1  1
 *           0  1  0 -1          0  0  2
 *
 * (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016, with G's third row and B's third
 * column as there.) Nothing is rounded: u and v are integers, sums may wrap, and the toolchain proves that
 * four times an output fits 32 bits.
 *
 * The sums of a channel go on from position to position: what is kept are P1 to P16, of which P(n) has the
 * first n positions (row, column) of
 *
 *     (1,1) (2,1) (0,1)   (1,2) (2,2) (0,2)   (1,0) (2,0) (0,0)   -(1,3) -(2,3) -(0,3)   -(3,1) -(3,2) -(3,0)
 *     (3,3)
 *
 * with the minus in u. So P9 is output (0,0), and 21 additions give the other three. The sums begin with four
 * times the bias, which then is in all of them. */
#ifndef THIMBLE_WINOGRAD_H
#define THIMBLE_WINOGRAD_H

#include "thimble_requant.h"

#include <stdint.h>

#define THIMBLE_WINOGRAD_POSITIONS 16
/* Tiles that are computed together. */
#define THIMBLE_WINOGRAD_TILES 3

/* Words of one tile's channels from one position to the next. */
#define THIMBLE_WINOGRAD_STEP(channels) ((channels) / 2 * THIMBLE_WINOGRAD_TILES)

/* Three tiles and the output channels that are left. Two channels of a tile are entries 2 * tile and the
 * next; `upper`, `lower`: where its outputs go, `step` bytes from the left to the right one. What lies
 * outside the image has step 0 or lower = upper: the outputs inside are written last.
 *
 * The assembly copies it to the stack as it is. */
typedef struct {
    int8_t *upper[2 * THIMBLE_WINOGRAD_TILES], *lower[2 * THIMBLE_WINOGRAD_TILES];
    int32_t step[2 * THIMBLE_WINOGRAD_TILES];
    uint32_t turns; /* of eight input channels, less one, in bits 0 to 7 and 24 to 31; 16 in bits 8 to 15 */
    const uint32_t *taps;
    int32_t pairs;      /* of output channels */
    uint32_t low, high; /* the activation's range, in every byte */
    const int32_t *parameters;
} thimble_winograd_block;

/* v of one tile whose pixels lie `channels` bytes and whose lines lie `line` bytes apart. Position by
 * position in the order above, for each four channels a word of channels 0 and 2 and one of 1 and 3; words of
 * the three tiles take turns. */
void thimble_winograd_tile_s8(const int8_t *window, int32_t line, int32_t channels, uint32_t *taps);

/* All outputs of the three tiles. */
void thimble_winograd_block_s8(const thimble_winograd_block *block);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's F(2x2, 3x3) and F(4x4, 3x3) in integers: the parts of thimble_convolve_winograd_s8 and
 * thimble_convolve_winograd_4x4_s8.
 *
 * A tile of n x n outputs sees a square d of n + 2 pixels along each side. With v = B^T d B and u = G g G^T
 * of a filter its outputs are A^T (u * v) A: with n = 2, sums over the input channels of 16 products instead
 * of 36; with n = 4, of 36 instead of 144 (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks,
 * 2016). Here the rows of G are multiplied with numbers that make everything an integer, and the outputs come
 * 4 or 576 times as large. Nothing is rounded. Sums may wrap, for the toolchain proves that 4 or 64 times an
 * output fits 32 bits; 576 times is 64 times after a multiplication with the inverse of 9 modulo 2^32.
 *
 * n = 2:
 *     B^T = 1  0 -1  0    G = 2  0  0    A^T = 1  1  1  0
 *           0  1  1  0        1  1  1          0  1 -1 -1
 *           0 -1  1  0        1 -1  1
 *           0  1  0 -1        0  0  2
 *
 * The sums of a filter go on from position to position: what is kept are P1 to P16, of which P(n) has the
 * first n positions (row, column) of
 *
 *     (1,1) (2,1) (0,1)   (1,2) (2,2) (0,2)   (1,0) (2,0) (0,0)   -(1,3) -(2,3) -(0,3)   -(3,1) -(3,2) -(3,0)
 *     (3,3)
 *
 * with the minus in u. So P9 is output (0,0), and 21 additions give the other three. The sums begin with four
 * times the bias, which then is in all of them.
 *
 * n = 4:
 *     B^T = 4  0 -5  0  1  0    G =  6  0  0    A^T = 1  1  1  1  1  0
 *           0 -4 -4  1  1  0        -4 -4 -4          0  1 -1  2 -2  0
 *           0  4 -4 -1  1  0        -4  4 -4          0  1  1  4  4  0
 *           0 -2 -1  2  1  0         1  2  4          0  1 -1  8 -8  2
 *           0  2 -1 -2  1  0         1 -2  4
 *           0  4  0 -5  0  1         0  0 12
 *
 * Positions come row by row, rows and columns in the order 1, 2, 3, 4, 0, 5; the sums go on as above. */
#ifndef THIMBLE_WINOGRAD_H
#define THIMBLE_WINOGRAD_H

#include "thimble_conv.h"
#include "thimble_dsp.h"

#include <stdint.h>

#define THIMBLE_WINOGRAD_ASM (THIMBLE_ASM && THIMBLE_FPU)

/* Beside a channel's shift code: the activation is narrower than int8; the multiplier is the bits of half a
 * float factor, and the rounding term the output's offset (THIMBLE_SHIFT_FLOAT). The assembly knows them. */
#define THIMBLE_WINOGRAD_NARROW 256
#define THIMBLE_WINOGRAD_FLOAT_FACTOR 512

#define THIMBLE_WINOGRAD_POSITIONS 16
/* Most tiles that are computed together. */
#define THIMBLE_WINOGRAD_TILES 3

/* Tiles that are computed together where so many are left: three, or two. With an end in twos no place is
 * wasted where four are left. `most`: 2 if there is no room for three. */
static inline int32_t thimble_winograd_together(int32_t left, int32_t most)
{
    return most == 2 || left == 4 || left < 3 ? 2 : 3;
}

/* What a block's loops count: turns of eight input channels less one, in bits 0 to 7 and 24 to 31; positions
 * in bits 8 to 13; tiles in bits 16 to 23. Bit 14: turns are of sixteen channels, as they are where three
 * tiles allow it. */
static inline uint32_t thimble_winograd_turns(int32_t channels, int32_t positions, int32_t tiles)
{
    const uint32_t sixteen = tiles == 3 && channels % 16 == 0;
    const uint32_t turns = (uint32_t)channels / (sixteen ? 16 : 8) - 1;
    return turns << 24 | (uint32_t)tiles << 16 | sixteen << 14 | (uint32_t)positions << 8 | turns;
}

/* Words of one position of a tile. */
static inline int32_t thimble_winograd_words(uint32_t turns)
{
    return (int32_t)(((turns & 255) + 1) << (turns >> 14 & 1) << 2);
}

/* Three tiles, or two, and the output channels that are left. Two channels of a tile are entries 2 * tile and
 * the next; `upper`, `lower`: where its outputs go, `step` bytes from the left to the right one. What lies
 * outside the image has step 0 or lower = upper: the outputs inside are written last.
 *
 * The assembly copies it to the stack as it is. */
typedef struct {
    int8_t *upper[2 * THIMBLE_WINOGRAD_TILES], *lower[2 * THIMBLE_WINOGRAD_TILES];
    int32_t step[2 * THIMBLE_WINOGRAD_TILES];
    uint32_t turns; /* see thimble_winograd_turns */
    const uint32_t *taps;
    int32_t pairs;      /* of output channels */
    uint32_t low, high; /* the activation's range, in every byte */
    const int32_t *parameters;
} thimble_winograd_block;

/* The same for tiles of 4x4 outputs, which all lie where they are written: `to` is the first one's place,
 * `line` the bytes from one row to the next, `step` those from one output of a row to the next. */
#define THIMBLE_WINOGRAD_4X4_SIDE 6

typedef struct {
    int8_t *to[2 * THIMBLE_WINOGRAD_TILES];
    int32_t line[2 * THIMBLE_WINOGRAD_TILES];
    int32_t step, unused[5];
    uint32_t turns;
    const uint32_t *taps;
    int32_t pairs;
    uint32_t low, high;
    const int32_t *parameters;
} thimble_winograd_block_4x4;

/* A square of side * side pixels of an image, from `y`, `x` on, one after the other; the zero point where
 * they lie outside. */
void thimble_winograd_gather_s8(
    const thimble_conv_shape *shape, const int8_t *input, int32_t y, int32_t x, int32_t side, int8_t *to);

/* v of one tile whose pixels lie `channels` bytes and whose lines lie `line` bytes apart. Position by
 * position in the order above, for each four channels a word of channels 0 and 2 and one of 1 and 3; words of
 * the `tiles` that are computed together take turns. */
void thimble_winograd_tile_s8(
    const int8_t *window, int32_t line, int32_t channels, int32_t tiles, uint32_t *taps);
void thimble_winograd_tile_4x4_s8(
    const int8_t *window, int32_t line, int32_t channels, int32_t tiles, uint32_t *taps);

/* All outputs of the tiles. */
void thimble_winograd_block_s8(const thimble_winograd_block *block);
void thimble_winograd_block_4x4_s8(const thimble_winograd_block_4x4 *block);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* int8 convolutions with weights repacked by the toolchain; exact as TFLite's reference kernels.
 *
 * All images are NHWC. The input's zero point is folded into the bias, so padding is the zero point itself.
 */
#ifndef THIMBLE_CONV_H
#define THIMBLE_CONV_H

#include "thimble_dsp.h"

/* Shape of a convolution. `depth` is the number of input channels that one filter sees (input channels for an
 * ungrouped one, 1 for a depthwise one); `input_c` the channels of a whole input pixel.
 *
 * `weight_zero_point` is 0 but in legacy uint8 models; the transposed convolution takes no other.
 *
 * Depthwise only: `transposed`, height and width are swapped throughout, so that rows are the longer; in
 * memory the image is as it was. `band` is how many output rows are computed together; more rows are quicker
 * and need more scratch.
 *
 * `input_line`, `output_line`: bytes from one line of the image (a row of columns) to the next where there
 * are gaps between them, as in a part of a larger image; then there is one batch. 0: there are none. Not for
 * partial and transposed convolutions. */
typedef struct {
    int32_t batches, input_h, input_w, input_c;
    int32_t output_h, output_w, output_c;
    int32_t depth;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t dilation_h, dilation_w;
    int32_t pad_top, pad_left;
    int32_t input_zero_point;
    int32_t weight_zero_point;
    int32_t transposed;
    int32_t band;
    int32_t input_line, output_line;
} thimble_conv_shape;

static inline int32_t thimble_line(int32_t with_gaps, int32_t columns, int32_t channels)
{
    return with_gaps ? with_gaps : columns * channels;
}

/* Convolution, any stride, dilation, padding and grouping.
 *
 * parameters: for each group and each pair of its channels (an odd last one is paired with zeros): two
 * biases; for each four taps (kernel rows, columns, depth; padded with zeros to K, a multiple of four) four
 * bytes of the first channel and four of the second; two multipliers; two int16 shift codes. scratch: 4 * K
 * bytes, word aligned; where depth is no multiple of four, kernel_w * depth bytes more if that is one, else K
 * more.
 *
 * With a weight zero point each filter ends in four taps for each 4 * THIMBLE_SUMMED_TAPS (or part) of the
 * others, all of them the zero point; they are part of K. The columns hold minus the window's sum there.
 */
void thimble_convolve_s8(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output);

/* 1x1 convolution of `pixels` pixels with stride 1; `depth` is a multiple of four. Parameters as above;
 * scratch 4 * depth bytes, word aligned. */
void thimble_convolve_1x1_s8(int32_t pixels,
                             int32_t depth,
                             int32_t channels,
                             const thimble_requant *requant,
                             const int8_t *input,
                             const int32_t *parameters,
                             void *scratch,
                             int8_t *output);

/* Sign-extends `words` * 4 bytes to int16 for one of two interleaved columns: bytes 0 and 2, then 1 and 3,
 * then two words left to the other column. */
void thimble_expand_column_s8(const int8_t *input, int32_t words, uint32_t *column);

/* int8 taps whose sum is an int16. */
#define THIMBLE_SUMMED_TAPS 252

/* Appends to one of two interleaved columns of `taps` taps, for each 4 * THIMBLE_SUMMED_TAPS (or part), four
 * more: minus the sums of the taps. Clears what fills the last word of taps. */
void thimble_sum_column_s8(int32_t taps, uint32_t *column);

/* Two interleaved columns (thimble_expand_column_s8) of 4 * words taps times `channels` filters; returns the
 * parameters after these. output_0 and output_1 may be equal; then column 0 counts. */
const int32_t *thimble_mat_mult_columns_s8(const int32_t *parameters,
                                           const uint32_t *columns,
                                           int32_t words,
                                           int32_t channels,
                                           const thimble_requant *requant,
                                           int8_t *output_0,
                                           int8_t *output_1);

/* Sums of columns 0 and 1 with channels 0 and 1. */
typedef struct {
    int32_t s00, s01, s10, s11;
} thimble_block_sums;

/* Two biases and 4 * words taps of two channels, with two interleaved columns; returns the parameters after
 * these. */
const int32_t *thimble_sum_block_s8(const int32_t *parameters,
                                    const uint32_t *columns,
                                    int32_t words,
                                    thimble_block_sums *sums);

/* The same of column 0 alone, which an odd last pixel is. */
const int32_t *thimble_mat_mult_column_s8(const int32_t *parameters,
                                          const uint32_t *columns,
                                          int32_t words,
                                          int32_t channels,
                                          const thimble_requant *requant,
                                          int8_t *output);

/* Depthwise convolution; output channel c reads input channel c / (output_c / input_c).
 *
 * parameters: for each output channel its bias, its multiplier, and as bytes its shift code, then its taps
 * row by row, padded with zeros to whole words. scratch, word aligned: int16, (band - 1) * stride_h +
 * (kernel_h - 1) * dilation_h + 1 lines of thimble_depthwise_line values, then 4 * kernel_h * (kernel_w / 2 +
 * 1) for taps; then int32, band * output_w + 1.
 */
void thimble_depthwise_conv_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output);

/* Depthwise convolution by blocks of four channels, one filter each, without a weight zero point, straight
 * from the image. `band` rows wait in scratch before the first is written.
 *
 * parameters: for each four channels: four biases, four multipliers, four int8 shift codes; for each tap, row
 * by row, a byte of each. scratch, word aligned: bytes 64 + 8 * kernel_h * kernel_w; 4 * kernel_h for each
 * column that min(output_w, THIMBLE_EDGE_OUTPUTS) neighbouring outputs see; 4 * band * output_w.
 */
#define THIMBLE_EDGE_OUTPUTS 4

void thimble_depthwise_conv_blocks_s8(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      void *scratch,
                                      int8_t *output);

/* Whether the depthwise kernel has a path of its own for this shape: two outputs at a time. */
static inline int32_t thimble_depthwise_is_3x3(const thimble_conv_shape *shape)
{
    return shape->kernel_h == 3 && shape->kernel_w == 3 && shape->dilation_h == 1 && shape->dilation_w == 1 &&
           shape->stride_w <= 2;
}

/* int16 values in one padded image line of the depthwise kernel: what the last outputs read (with stride 1
 * and no path for 3x3, outputs come in fours), rounded up to even, and two more that word loads touch. */
static inline int32_t thimble_depthwise_line(const thimble_conv_shape *shape)
{
    const int32_t fours = shape->stride_w == 1 && !thimble_depthwise_is_3x3(shape);
    const int32_t outputs = fours ? (shape->output_w + 3) & ~3 : shape->output_w;
    const int32_t seen = (outputs - 1) * shape->stride_w + (shape->kernel_w - 1) * shape->dilation_w + 1;
    return ((seen + 1) & ~1) + 2;
}

/* Fully connected: `rows` inputs of `depth` bytes, `units` outputs each. Sums are scaled and rounded once, as
 * LiteRT does since 2025.
 *
 * parameters: for each four units (the last ones padded with zeros to four): four biases; for each four taps
 *     (padded with zeros) four bytes of each unit in turn; then, where `common` is null, their scaling.
 * common: the scaling of all units, or null. A scaling is four multipliers, four low parts of multipliers and
 * four int8 shift codes in one word.
 */
void thimble_fully_connected_s8(int32_t rows,
                                int32_t depth,
                                int32_t units,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                const int32_t *common,
                                int8_t *output);

/* The same with filters of four bits, packed: for each eight taps (padded with zeros) one word of each unit
 * in turn. Four-bit fields 0 to 7 of a word, lowest first, hold taps 0, 1, 4, 5, 2, 3, 6 and 7, each plus 8.
 */
void thimble_fully_connected_s4(int32_t rows,
                                int32_t depth,
                                int32_t units,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                const int32_t *common,
                                int8_t *output);

/* Convolution, any stride, dilation, padding and grouping, with filters of four bits.
 *
 * parameters: for each group and each four of its channels (the last ones padded with zeros to four): four
 * biases; the filters, packed as above; four multipliers; four int8 shift codes. scratch: the bytes of one
 * window.
 */
void thimble_convolve_s4(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output);

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

/* Transposed convolution: input row i adds to output row i * stride_h - pad_top + (kernel row), columns
 * likewise. Dilation and `transposed` are not used; `depth` equals `input_c`.
 *
 * parameters: for each output channel its bias (nothing folded in), multiplier and shift code; then for each
 * tap, row by row, `depth` bytes padded with zeros to whole words. scratch, word aligned: as many times as
 * taps can meet in one output pixel (ceil(kernel_h / stride_h) * ceil(kernel_w / stride_w)): int16 for each
 * of `depth` rounded up to four, and one int32.
 */
void thimble_transpose_conv_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* int8 convolutions with weights repacked by the toolchain; exact as TFLite's reference kernels.
 *
 * All images are NHWC. The input's zero point is folded into the bias, so padding is the zero point itself.
 */
#ifndef THIMBLE_CONV_H
#define THIMBLE_CONV_H

#include "thimble_requant.h"

#include <stdint.h>

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

/* Convolution, any stride, dilation, padding and grouping.
 *
 * parameters: for each group and each pair of its channels (an odd last one is paired with zeros): two
 * biases; for each four taps (kernel rows, columns, depth; padded with zeros to K, a multiple of four) four
 * bytes of the first channel and four of the second; two multipliers; two int16 shift codes. scratch: 4 * K
 * bytes, word aligned; where depth is no multiple of four, kernel_w * depth bytes more if that is one, else K
 * more.
 *
 * With a weight zero point each filter ends in four taps for each 4 * 252 (or part) of the
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
 * column that min(output_w, 4) neighbouring outputs see; 4 * band * output_w.
 */
void thimble_depthwise_conv_blocks_s8(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      void *scratch,
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

/* SPDX-License-Identifier: Apache-2.0 */
/* int8 convolutions with filters repacked by the toolchain. Results equal those of TFLite's reference
 * kernels.
 *
 * Images are NHWC. `parameters` holds biases, filters and scaling in the order in which a kernel reads them,
 * as the comment of each kernel says. Biases include what the input's zero point adds, so a tap in the
 * padding is the zero point itself. `scratch` is aligned to words.
 */
#ifndef THIMBLE_CONV_H
#define THIMBLE_CONV_H

#include "thimble_requant.h"

#include <stdint.h>

/* Shape of a convolution.
 *
 * depth: input channels that one filter sees: input_c divided by the number of groups; 1 if depthwise.
 * weight_zero_point: not 0 only in legacy uint8 models; 0 for a transposed convolution.
 * transposed (depthwise only): 1 if the other fields have height and width swapped, so that the kernel walks
 * along the longer side. The image in memory is not transposed.
 * band: of a depthwise convolution the output rows that are computed together; more rows are quicker and take
 * more scratch. Of Winograd's, 2 if at most two tiles of outputs are computed together: slower, less scratch.
 * at_once: windows that are expanded to int16 together, two to four (thimble_convolve_s8 and _s4): with more
 * of them weights are read less often; or 4 if the lines of four channels are made at once, else 0 (depthwise
 * windows of 3x3 in bands; one filter a channel, a multiple of four channels). input_line, output_line: bytes
 * from one line of a strided image to the next; then there is one batch. 0: the lines are contiguous, as they
 * always are for partial and transposed convolutions. */
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
    int32_t at_once;
    int32_t input_line, output_line;
} thimble_conv_shape;

/* Convolution with any stride, dilation, padding and number of groups.
 *
 * A filter has K taps: kernel_h * kernel_w * depth in the order rows, columns, channels, then zeros up to a
 * multiple of four. With a weight zero point, four more taps follow for each 4 * 252 (or part) of these; they
 * are all the zero point, and the kernel multiplies them with minus the sum of the window.
 *
 * parameters: for each group, for each pair of its channels (an odd last one is paired with zeros): two
 * biases; for each four taps, the first and the third, then the second and the fourth, of each a byte of the
 * first channel and one of the second; two multipliers; two int16 shift codes; two rounding terms (the
 * output's offset where the code is THIMBLE_SHIFT_FLOAT).
 *
 * scratch: 2 * at_once * K bytes for windows as int16. If depth is not a multiple of four, more to gather a
 * window: kernel_w * depth bytes if that is a multiple of four, else kernel_h * kernel_w * depth rounded
 * up to four (four times that, if at_once is 4), and four. */
void thimble_convolve_s8(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output);

/* Convolution without groups or a weight zero point, for vectors of sixteen lanes.
 *
 * parameters: for each four channels (the last ones padded to four): for the first and the third, then for
 * the second and the fourth, for each sixteen taps (padded with zeros), sixteen bytes of the one and of the
 * other; four biases; four multipliers; four rounding terms; four int8 shift codes
 * (thimble_requantize_lanes.h).
 *
 * scratch: two windows of kernel_h * kernel_w * depth bytes, the first rounded up to four, the second to
 * sixteen. */
void thimble_convolve_lanes_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output);

/* The same with a weight zero point. What that adds to all sums of a window is added to them in vectors.
 *
 * scratch: as for thimble_convolve_lanes_s8, and 32 bytes. */
void thimble_convolve_offset_lanes_s8(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      void *scratch,
                                      int8_t *output);

/* 1x1 convolution of `pixels` contiguous pixels with stride 1; `depth` is a multiple of four. `at_once`
 * is as in the shape.
 *
 * parameters: as for thimble_convolve_s8.
 *
 * scratch: 2 * at_once * depth bytes. */
void thimble_convolve_1x1_s8(int32_t pixels,
                             int32_t depth,
                             int32_t channels,
                             int32_t at_once,
                             const thimble_requant *requant,
                             const int8_t *input,
                             const int32_t *parameters,
                             void *scratch,
                             int8_t *output);

/* 3x3 convolution of one image with stride 1 and any padding by Winograd's F(2x2, 3x3), in integers: a third
 * to a half of the products, exactly. input_c = depth is a multiple of eight, 2048 at most; output_c is even;
 * no weight zero point; every shift code is >= 0, or THIMBLE_SHIFT_FLOAT. kernel, stride and dilation are not
 * read.
 *
 * parameters: for each pair of output channels: four times their biases; 16 filters
 * (source/convolution/thimble_winograd.h), of which for each four input channels two int16 each of channels 0
 * and 2 of the first filter, the same of the second, then channels 1 and 3 of both; for each of the two its
 * multiplier, rounding term ((2 * output offset + 1) << shift code, less what the bias was raised by), and
 * shift code, plus 256 if the activation is narrower than int8; or the bits of half a float factor, the
 * output's offset, and 512 (THIMBLE_SHIFT_FLOAT), plus 256.
 *
 * scratch: 112 * input_c bytes, 80 * input_c where band is 2 or there are 1, 2 or 4 tiles of outputs. Besides
 * it takes 500 bytes of stack. */
void thimble_convolve_winograd_s8(const thimble_conv_shape *shape,
                                  const thimble_requant *requant,
                                  const int8_t *input,
                                  const int32_t *parameters,
                                  void *scratch,
                                  int8_t *output);

/* The same by F(4x4, 3x3): a quarter of the products. The filters are 36, from
 * source/convolution/thimble_winograd.h, and the biases come 576 times as large.
 *
 * scratch: 216 * input_c bytes and the larger of 36 * input_c and 48 * output_c. Besides it takes 1000 bytes
 * of stack. */
void thimble_convolve_winograd_4x4_s8(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      void *scratch,
                                      int8_t *output);

/* Convolution without groups for cores without the DSP extension: two pixels in one word, so that a product
 * with a weight is two products. No weight zero point; `depth` equals `input_c`.
 *
 * A word holds pixel + 65536 * next pixel. Sums of such words times weights are sums of both pixels while the
 * first stays within int16 and the second within it but for -32768: of weights w, while the sum of |w| is at
 * most 255, as pixels are within +-128. So the toolchain cuts a filter's taps into runs.
 *
 * parameters: for each four channels (the last ones padded with zeros to four): four biases; four
 * multipliers; four int8 shift codes; then the runs, in which the taps come in the order rows, columns,
 * channels: the first tap, a byte of each channel; how many taps follow it, at most eight; these.
 *
 * scratch: 8 * kernel_h * kernel_w * depth bytes for the windows of four pixels; then `depth` bytes. */
void thimble_convolve_packed_s8(const thimble_conv_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output);

/* Depthwise convolution; output channel c reads input channel c / (output_c / input_c).
 *
 * parameters: for each output channel: its bias, without the input's zero point; its multiplier; its rounding
 * term ((2 * output offset + 1) << shift code, less what the bias was raised by); as bytes its shift code,
 * then its taps row by row, padded with zeros to whole words.
 *
 * scratch: int16 lines of one channel, (band - 1) * stride_h + (kernel_h - 1) * dilation_h + 1 of them, but
 * at most input_h. A line has as many values as the outputs of one line see, rounded up to even, and two; if
 * stride_w is at most 2, output_w counts as rounded up to four. Then words of two taps: kernel_h * 2 *
 * (kernel_w / 2 + 1) if stride_w and dilation_w are 1, else kernel_h * ((kernel_w + 1) / 2); then int32 sums,
 * band * output_w + 3. */
void thimble_depthwise_conv_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output);

/* This code of a channel says that its sums are rounded once, and that the activation is int8's own range:
 * floor((sum * multiplier / 2^32 + rounding) / 4). The toolchain has proved that this is the same, with a
 * multiplier, a bias and a rounding term for it. Depthwise 3x3 windows only. */
#define THIMBLE_CODE_ONCE 64

/* Depthwise convolution with 3x3 windows, no dilation and a stride of 1 or 2 along rows. `band` is 1.
 *
 * parameters: for each output channel: its bias; its multiplier; as bytes, with t(row, column) for taps,
 * t00 t10 t01 t11, t20, its shift code, t21 t02, its rounding term of int16 (THIMBLE_CODE_ONCE), t12 t22.
 *
 * scratch: three image lines, each of 4 * (ceil(output_w / 2) * stride_w + 1) bytes. */
void thimble_depthwise_3x3_s8(const thimble_conv_shape *shape,
                              const thimble_requant *requant,
                              const int8_t *input,
                              const int32_t *parameters,
                              void *scratch,
                              int8_t *output);

/* The same for lines that so take at most 64 bytes (128 if `at_once` is 4), `band` rows of outputs at a time:
 * the first with a stride of 1 along rows, the second of 2.
 *
 * scratch: (band - 1) * stride_h + 3 lines of 32 bytes, or of 64 where 32 are too few; if
 * `at_once` is 4, of 256 or 512. */
void thimble_depthwise_3x3_band_s8(const thimble_conv_shape *shape,
                                   const thimble_requant *requant,
                                   const int8_t *input,
                                   const int32_t *parameters,
                                   void *scratch,
                                   int8_t *output);

void thimble_depthwise_3x3_band_step_2_s8(const thimble_conv_shape *shape,
                                          const thimble_requant *requant,
                                          const int8_t *input,
                                          const int32_t *parameters,
                                          void *scratch,
                                          int8_t *output);

/* Depthwise convolution by channel blocks, four channels at a time; one filter a channel, no weight zero
 * point, channels a multiple of four. It reads windows from the image itself, and keeps `band` rows of
 * outputs in scratch before it writes the first of them.
 *
 * parameters: for each channel block: four biases; four multipliers; four int8 shift codes; four rounding
 * terms ((2 * output offset + 1) << shift code, less what the bias was raised by); for each tap, row by row,
 * a byte of each channel.
 *
 * scratch, in bytes: 64 + 8 * kernel_h * kernel_w; then 4 * kernel_h for each column that min(output_w,
 * 4) neighbouring outputs see; then 4 * band * output_w. */
void thimble_depthwise_conv_blocks_s8(const thimble_conv_shape *shape,
                                      const thimble_requant *requant,
                                      const int8_t *input,
                                      const int32_t *parameters,
                                      void *scratch,
                                      int8_t *output);

/* The same for vectors of four int32 lanes, without dilation.
 *
 * parameters: for each four channels: four biases, four multipliers, four rounding terms and four int8 shift
 * codes, as for thimble_convolve_lanes_s8; for each tap a byte of each channel.
 *
 * scratch, in bytes, with columns the greater of output_w and four: 4 * kernel_h * ((columns - 1) * stride_w
 * + kernel_w), then 4 * band * columns. */
void thimble_depthwise_lanes_s8(const thimble_conv_shape *shape,
                                const thimble_requant *requant,
                                const int8_t *input,
                                const int32_t *parameters,
                                void *scratch,
                                int8_t *output);

/* The same of windows of at most 4x4, each a vector of one channel: two rows of outputs at a time if kernel_h
 * + stride_h is at most four. Images are aligned to words.
 *
 * parameters: for each four channels: biases to shift codes as above; for each channel the columns of its
 * filter, words whose bytes are rows and then zeros.
 *
 * scratch, in bytes: 16 * (the lesser of output_w and 16, less one, times stride_w, and four, rounded up to
 * four), then 4 * band * output_w, and as much for one row more if there are two at a time. */
void thimble_depthwise_windows_lanes_s8(const thimble_conv_shape *shape,
                                        const thimble_requant *requant,
                                        const int8_t *input,
                                        const int32_t *parameters,
                                        void *scratch,
                                        int8_t *output);

/* As thimble_convolve_s8, with filters of four bits and no weight zero point; at_once is two or four.
 *
 * parameters: for each group, for each four of its channels (the last ones padded with zeros to four): the
 * biases of the first and the third; for each four taps, a word of the first and the third, then one of the
 * second and the fourth, each half of which holds four bits of each channel, the first channel's lowest,
 * those of the first and the third plus 8; the biases of the second and the fourth; four multipliers; four
 * rounding terms; four int8 shift codes; 2 if all four are rounded once, 1 if all are quick and not clamped,
 * else 0, or -1 if there are less than four, all rounded once. */
void thimble_convolve_s4(const thimble_conv_shape *shape,
                         const thimble_requant *requant,
                         const int8_t *input,
                         const int32_t *parameters,
                         void *scratch,
                         int8_t *output);

/* As thimble_convolve_1x1_s8, with parameters as for thimble_convolve_s4; at_once is two or four. */
void thimble_convolve_1x1_s4(int32_t pixels,
                             int32_t depth,
                             int32_t channels,
                             int32_t at_once,
                             const thimble_requant *requant,
                             const int8_t *input,
                             const int32_t *parameters,
                             void *scratch,
                             int8_t *output);

/* Transposed convolution: input row i adds to output row i * stride_h - pad_top + (kernel row), columns
 * likewise. `depth` equals `input_c`; dilation and `transposed` are not read.
 *
 * parameters: for each output channel its bias (without the input's zero point), multiplier and shift code;
 * then for each tap, row by row, `depth` bytes padded with zeros to whole words.
 *
 * scratch: for each tap that can reach one output pixel, of which there are ceil(kernel_h / stride_h) *
 * ceil(kernel_w / stride_w): `depth` int16, rounded up to a multiple of four, and one int32. */
void thimble_transpose_conv_s8(const thimble_conv_shape *shape,
                               const thimble_requant *requant,
                               const int8_t *input,
                               const int32_t *parameters,
                               void *scratch,
                               int8_t *output);

/* The same for vectors of sixteen lanes. Outputs whose rows and columns agree modulo the strides see the same
 * taps: windows of an ordinary convolution with stride 1.
 *
 * parameters: for each row modulo stride_h, for each column modulo stride_w (plus the padding), those of
 * thimble_convolve_lanes_s8 with kernel rows and columns from there on in steps of the stride, the last one
 * first; one of zeros where there is none.
 *
 * scratch: as for thimble_convolve_lanes_s8, with ceil(kernel_h / stride_h) * ceil(kernel_w / stride_w) *
 * depth taps. */
void thimble_transpose_conv_lanes_s8(const thimble_conv_shape *shape,
                                     const thimble_requant *requant,
                                     const int8_t *input,
                                     const int32_t *parameters,
                                     void *scratch,
                                     int8_t *output);

#endif

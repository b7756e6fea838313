/* SPDX-License-Identifier: Apache-2.0 */
/* Operators computed in parts: int32 sums over some of what an output sums over, and their end.
 *
 * Sums wrap, so that their order does not matter. `sums`: those of the parts before, or null; may be
 * `output`.
 */
#ifndef THIMBLE_SUMS_H
#define THIMBLE_SUMS_H

#include "thimble_conv.h"
#include "thimble_matmul.h"
#include "thimble_pool.h"

/* A convolution's sums over the `depth` input channels of one image; `depth` equals `input_c`.
 *
 * parameters: for each pair of channels (an odd last one is paired with zeros) two biases, which hold what
 * the input's zero point adds; for each four taps four bytes of the first channel and four of the second.
 * scratch: as thimble_convolve_s8 says. */
void thimble_partial_conv_s8(const thimble_conv_shape *shape,
                             const int8_t *input,
                             const int32_t *parameters,
                             void *scratch,
                             const int32_t *sums,
                             int32_t *output);

/* The same of a 1x1 convolution of `pixels` pixels with stride 1; `depth` is a multiple of four. scratch: 4 *
 * depth bytes, word aligned. */
void thimble_partial_conv_1x1_s8(int32_t pixels,
                                 int32_t depth,
                                 int32_t channels,
                                 const int8_t *input,
                                 const int32_t *parameters,
                                 void *scratch,
                                 const int32_t *sums,
                                 int32_t *output);

/* A fully connected layer's sums over some of its inputs.
 *
 * parameters: for each four units (the last ones padded with zeros to four): four biases, which hold what the
 * input's zero point adds; for each four taps (padded with zeros) four bytes of each unit in turn. */
void thimble_partial_fully_connected_s8(int32_t rows,
                                        int32_t depth,
                                        int32_t units,
                                        const int8_t *input,
                                        const int32_t *parameters,
                                        const int32_t *sums,
                                        int32_t *output);

/* Sums of the stored values over `first` and `second`; see thimble_reduce_shape. */
void thimble_partial_sum_s8(const thimble_reduce_shape *shape,
                            const int8_t *input,
                            const int32_t *sums,
                            int32_t *output);

/* A matrix product over some of the inner dimension; scratch as thimble_batch_matmul_s8 says. */
void thimble_partial_matmul_s8(const thimble_matmul_shape *shape,
                               const int8_t *x,
                               const int8_t *y,
                               void *scratch,
                               const int32_t *sums,
                               int32_t *output);

/* Sums to int8, `bias` added first. parameters: for each channel its multiplier and shift code. output may
 * begin where sums does. */
void thimble_requantize_sums_s8(int32_t pixels,
                                int32_t channels,
                                int32_t bias,
                                const thimble_requant *requant,
                                const int32_t *sums,
                                const int32_t *parameters,
                                int8_t *output);

/* The same with one rounding; parameters: for each channel its multiplier, shift code and low part. */
void thimble_requantize_sums_once_s8(int32_t pixels,
                                     int32_t channels,
                                     int32_t bias,
                                     const thimble_requant *requant,
                                     const int32_t *sums,
                                     const int32_t *parameters,
                                     int8_t *output);

/* Sums to averages of `count`, halves away from zero or, `even`, to even. */
void thimble_average_sums_s8(int32_t elements,
                             int32_t bias,
                             int32_t count,
                             int32_t even,
                             const thimble_requant *requant,
                             const int32_t *sums,
                             int8_t *output);

#endif

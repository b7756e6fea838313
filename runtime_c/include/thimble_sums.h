/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that are split along the dimension they sum over. Each part adds its int32 sums to those of the
 * parts before; a last kernel turns the sums into int8.
 *
 * `sums`: what the parts before have summed, or null for the first part; may be the same memory as `output`.
 * Sums wrap, so their order does not matter.
 */
#ifndef THIMBLE_SUMS_H
#define THIMBLE_SUMS_H

#include "thimble_conv.h"
#include "thimble_matmul.h"
#include "thimble_pool.h"

/* Sums of a convolution over the `depth` input channels of one image; `depth` equals `input_c`. Output: NHWC.
 *
 * parameters: for each pair of channels (an odd last one is paired with zeros): two biases, which include
 * what the input's zero point adds; for each four taps, four bytes of the first channel and four of the
 * second.
 *
 * scratch: as for thimble_convolve_s8. */
void thimble_partial_conv_s8(const thimble_conv_shape *shape,
                             const int8_t *input,
                             const int32_t *parameters,
                             void *scratch,
                             const int32_t *sums,
                             int32_t *output);

/* The same of a 1x1 convolution of `pixels` contiguous pixels with stride 1; `depth` is a multiple of four.
 *
 * scratch: 4 * depth bytes, word aligned. */
void thimble_partial_conv_1x1_s8(int32_t pixels,
                                 int32_t depth,
                                 int32_t channels,
                                 const int8_t *input,
                                 const int32_t *parameters,
                                 void *scratch,
                                 const int32_t *sums,
                                 int32_t *output);

/* Any of them for vectors of sixteen lanes.
 *
 * parameters: the biases of all channels, padded to four; then the filters as for thimble_convolve_lanes_s8.
 *
 * scratch: as for thimble_convolve_lanes_s8. */
void thimble_partial_conv_lanes_s8(const thimble_conv_shape *shape,
                                   const int8_t *input,
                                   const int32_t *parameters,
                                   void *scratch,
                                   const int32_t *sums,
                                   int32_t *output);

/* Sums of a fully connected layer over `depth` of its inputs; output [rows][units]. No scratch.
 *
 * parameters: for each four units (the last ones padded with zeros to four): four biases, which include what
 * the input's zero point adds; for each four taps (padded with zeros) four bytes of each unit in turn. */
void thimble_partial_fully_connected_s8(int32_t rows,
                                        int32_t depth,
                                        int32_t units,
                                        const int8_t *input,
                                        const int32_t *parameters,
                                        const int32_t *sums,
                                        int32_t *output);

/* The same for vectors of sixteen lanes: the filters lie in turns of sixteen taps. */
void thimble_partial_fully_connected_lanes_s8(int32_t rows,
                                              int32_t depth,
                                              int32_t units,
                                              const int8_t *input,
                                              const int32_t *parameters,
                                              const int32_t *sums,
                                              int32_t *output);

/* Sums of the stored values over `first` and `second` of thimble_reduce_shape; output [outer][middle][inner].
 */
void thimble_partial_sum_s8(const thimble_reduce_shape *shape,
                            const int8_t *input,
                            const int32_t *sums,
                            int32_t *output);

/* Sums of a matrix product over `depth` of its inner dimension; layout and scratch as for
 * thimble_batch_matmul_s8. */
void thimble_partial_matmul_s8(const thimble_matmul_shape *shape,
                               const int8_t *x,
                               const int8_t *y,
                               void *scratch,
                               const int32_t *sums,
                               int32_t *output);

/* Sums [pixels][channels], `bias` added, to int8. `output` may begin where `sums` begins.
 *
 * parameters: for each channel its multiplier and shift code. */
void thimble_requantize_sums_s8(int32_t pixels,
                                int32_t channels,
                                int32_t bias,
                                const thimble_requant *requant,
                                const int32_t *sums,
                                const int32_t *parameters,
                                int8_t *output);

/* The same with one rounding.
 *
 * parameters: for each channel its multiplier, shift code and low part of the multiplier. */
void thimble_requantize_sums_once_s8(int32_t pixels,
                                     int32_t channels,
                                     int32_t bias,
                                     const thimble_requant *requant,
                                     const int32_t *sums,
                                     const int32_t *parameters,
                                     int8_t *output);

/* Sums, `bias` added, divided by `count`, to int8: halves are rounded away from zero or, if `even`, to even.
 */
void thimble_average_sums_s8(int32_t elements,
                             int32_t bias,
                             int32_t count,
                             int32_t even,
                             const thimble_requant *requant,
                             const int32_t *sums,
                             int8_t *output);

#endif
